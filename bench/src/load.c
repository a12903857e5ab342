/* A load client: load PORT PATH BODY-FILE CONNECTIONS SECONDS [HEADER-FILE [REQUESTS]].

   Kept-alive connections, each sending the same request again as soon as it is answered; with
   REQUESTS it stops after so many. Prints one JSON line; times are in microseconds. */
#include "wire.h"

typedef struct {
  int socket;
  Buffer in;
  size_t sent, head, at, length;
  double began, first;
  bool chunked, closes, live, bad;
} Connection;

static int port, epoll_fd;
static Buffer request;
static double *times, *firsts;
static size_t answers, room;
static long event_count, byte_count, failures, refusals;
static char sample[201];

static bool push(Connection *connection) {
  while (connection->sent < request.length) {
    ssize_t sent = send(connection->socket, request.data + connection->sent,
                        request.length - connection->sent, MSG_NOSIGNAL);
    if (sent < 0) break;
    connection->sent += sent;
  }
  bool more = connection->sent < request.length;
  watch(epoll_fd, EPOLL_CTL_MOD, connection->socket, EPOLLIN | (more ? EPOLLOUT : 0), connection);
  return !more;
}

static void begin(Connection *connection) {
  connection->in.length = connection->sent = connection->head = connection->at = connection->length = 0;
  connection->chunked = connection->closes = connection->bad = false;
  connection->first = 0;
  connection->began = seconds();
  push(connection);
}

static void dial(Connection *connection) {
  if (connection->socket) close(connection->socket);
  connection->socket = socket(AF_INET, SOCK_STREAM, 0);
  no_delay(connection->socket);
  struct sockaddr_in address = loopback(port);
  if (connect(connection->socket, (void *)&address, sizeof address)) perror("connect"), exit(1);
  fcntl(connection->socket, F_SETFL, O_NONBLOCK);
  watch(epoll_fd, EPOLL_CTL_ADD, connection->socket, EPOLLIN, connection);
}

static void read_head(Connection *connection) {
  connection->head = connection->at = head_length(connection->in.data, connection->in.length);
  if (!connection->head) return;
  char *data = connection->in.data;
  const char *length = header(data, connection->head, "\ncontent-length:");
  const char *state = header(data, connection->head, "\nconnection:");
  connection->length = length ? strtoul(length, NULL, 10) : 0;
  connection->chunked = !length && header(data, connection->head, "\ntransfer-encoding:") != NULL;
  connection->closes = state && !strncasecmp(state + strspn(state, " "), "close", 5);
  connection->bad = data[9] != '2';
}

static bool complete(Connection *connection) {
  if (!connection->head) read_head(connection);
  if (!connection->head) return false;
  if (!connection->first && connection->in.length > connection->head) connection->first = seconds();
  if (!connection->chunked) return connection->in.length >= connection->head + connection->length;
  for (;;) {
    char *at = connection->in.data + connection->at;
    char *line = memmem(at, connection->in.length - connection->at, "\r\n", 2);
    if (!line) return false;
    size_t size = strtoul(at, NULL, 16), end = line + 2 - connection->in.data + size + 2;
    if (connection->in.length < end) return false;
    connection->at = end;
    if (!size) return true;
  }
}

static void note(Connection *connection) {
  double now = seconds();
  if (answers == room) {
    room = room ? room * 2 : 65536;
    times = realloc(times, room * sizeof *times);
    firsts = realloc(firsts, room * sizeof *firsts);
  }
  times[answers] = now - connection->began;
  firsts[answers++] = (connection->first ? connection->first : now) - connection->began;
  byte_count += connection->in.length;
  char *at = connection->in.data, *end = at + connection->in.length;
  while ((at = memmem(at, end - at, "data: {", 7))) event_count++, at += 7;
  if (!connection->bad) return;
  refusals++;
  if (sample[0]) return;
  size_t length = connection->in.length < 200 ? connection->in.length : 200;
  for (size_t i = 0; i < length; i++) {
    char letter = connection->in.data[i];
    sample[i] = letter < 32 || letter == '"' || letter == '\\' ? ' ' : letter;
  }
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double at(const double *sorted, double part) {
  return answers ? sorted[(size_t)(part * (answers - 1))] * 1e6 : 0;
}

static void read_request(char **words, const char *headers) {
  char head[8192], body_head[128], extra[4096] = "";
  Buffer body = {0};
  int file = open(words[3], O_RDONLY);
  if (file < 0 || buffer_fill(&body, file) < 0) perror(words[3]), exit(1);
  close(file);
  FILE *given = headers ? fopen(headers, "r") : NULL;
  if (given) extra[fread(extra, 1, sizeof extra - 1, given)] = 0, fclose(given);
  int length = snprintf(head, sizeof head,
                        "POST %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                        "Accept: */*\r\nUser-Agent: load\r\n%s",
                        words[2], port, extra);
  buffer_append(&request, head, length);
  length = snprintf(body_head, sizeof body_head, "Content-Length: %zu\r\n\r\n", body.length);
  buffer_append(&request, body_head, length);
  buffer_append(&request, body.data, body.length);
}

int main(int count, char **words) {
  if (count < 6) return fprintf(stderr, "load PORT PATH BODY CONNECTIONS SECONDS [HEADERS [REQUESTS]]\n"), 2;
  many_files();
  port = atoi(words[1]);
  long size = atol(words[4]), limit = count > 7 ? atol(words[7]) : -1, begun = size, live = size;
  read_request(words, count > 6 && strcmp(words[6], "-") ? words[6] : NULL);
  epoll_fd = epoll_create1(0);
  Connection *connections = calloc(size, sizeof *connections);
  for (long i = 0; i < size; i++) dial(&connections[i]);
  double began = seconds(), end = began + atof(words[5]), last = end + 60;
  for (long i = 0; i < size; i++) connections[i].live = true, begin(&connections[i]);
  struct epoll_event events[256];
  while (live > 0 && seconds() < last) {
    int ready = epoll_wait(epoll_fd, events, 256, 1000);
    for (int i = 0; i < ready; i++) {
      Connection *connection = events[i].data.ptr;
      if (!connection->live) continue;
      if (events[i].events & EPOLLOUT) push(connection);
      if (!(events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))) continue;
      int gone = buffer_fill(&connection->in, connection->socket);
      bool whole = complete(connection);
      if (!whole && !gone) continue;
      if (whole) note(connection);
      else failures++;
      if (seconds() >= end || (limit >= 0 && begun >= limit)) {
        connection->live = false, live--;
        continue;
      }
      begun++;
      if (gone || connection->closes) dial(connection);
      begin(connection);
    }
  }
  double spent = seconds() - began;
  failures += live;
  qsort(times, answers, sizeof *times, ascending);
  qsort(firsts, answers, sizeof *firsts, ascending);
  printf("{\"answers\":%zu,\"seconds\":%.4f,\"p50\":%.1f,\"p99\":%.1f,\"max\":%.1f,\"first_p50\":%.1f,"
         "\"first_p99\":%.1f,\"events\":%ld,\"bytes\":%ld,\"failures\":%ld,\"refusals\":%ld,\"sample\":\"%s\"}\n",
         answers, spent, at(times, .5), at(times, .99), at(times, 1), at(firsts, .5), at(firsts, .99),
         event_count, byte_count, failures, refusals, sample);
  return 0;
}
