/* A fake upstream: upstream PORT. It answers chat requests at once, one epoll loop, no parsing.

   A body with `"stream":true` gets events, any other the same JSON. `events=N` and `pace=MICROSECONDS`
   anywhere in the first kilobytes of the body say how many events and how far apart (100, 0). */
#include "wire.h"
#include <sys/timerfd.h>

#define TICK_NS 500000
#define SEEN 65536

typedef struct Client {
  int socket;
  Buffer in, out;
  size_t written, scanned;
  long events;
  double pace, due;
  struct Client *previous, *next;
  bool paced, streaming;
} Client;

static int epoll_fd;
static Client *paced;
static char reply[2048], stream_head[512], event[1024], ending[1024];
static size_t reply_length, head_size, event_length, ending_length;

static void pace_on(Client *client) {
  client->paced = true;
  client->previous = NULL;
  client->next = paced;
  if (paced) paced->previous = client;
  paced = client;
}

static void pace_off(Client *client) {
  if (!client->paced) return;
  client->paced = false;
  if (client->previous) client->previous->next = client->next;
  else paced = client->next;
  if (client->next) client->next->previous = client->previous;
}

static void drop(Client *client) {
  pace_off(client);
  close(client->socket);
  free(client->in.data);
  free(client->out.data);
  free(client);
}

/* Writes what is waiting; false when the client is gone. */
static bool flush(Client *client) {
  while (client->written < client->out.length) {
    ssize_t sent = send(client->socket, client->out.data + client->written,
                        client->out.length - client->written, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) {
      watch(epoll_fd, EPOLL_CTL_MOD, client->socket, EPOLLIN | EPOLLOUT, client);
      return true;
    }
    if (sent < 0) return false;
    client->written += sent;
  }
  client->written = client->out.length = 0;
  return true;
}

/* One write per event, as a real upstream has it. */
static bool say(Client *client, const char *data, size_t length) {
  bool idle = client->out.length == 0;
  buffer_append(&client->out, data, length);
  return idle ? flush(client) : true;
}

static bool stream_on(Client *client) {
  while (client->events > 0 && client->out.length == 0) {
    client->events--;
    if (!say(client, event, event_length)) return false;
    if (client->pace > 0) {
      client->due += client->pace;
      return true;
    }
  }
  if (client->events > 0 || client->out.length) return true;
  client->streaming = false;
  pace_off(client);
  return say(client, ending, ending_length);
}

static double option(Client *client, size_t head, size_t total, const char *name, double absent) {
  size_t length = total - head < SEEN ? total - head : SEEN;
  char *found = memmem(client->in.data + head, length, name, strlen(name));
  return found ? strtod(found + strlen(name), NULL) : absent;
}

static bool answer(Client *client, size_t head, size_t total) {
  char *body = client->in.data + head;
  bool streams = memmem(body, total - head, "\"stream\":true", 13) != NULL;
  client->events = option(client, head, total, "events=", 100);
  client->pace = option(client, head, total, "pace=", 0) * 1e-6;
  buffer_drop(&client->in, total);
  client->scanned = 0;
  if (!streams) return say(client, reply, reply_length);
  client->streaming = true;
  client->due = seconds() + client->pace;
  if (client->pace > 0) pace_on(client);
  return say(client, stream_head, head_size) && stream_on(client);
}

/* The size of a chunked message, 0 while it is not whole. */
static size_t chunked_end(Client *client, size_t head) {
  size_t at = client->scanned ? client->scanned : head;
  for (;;) {
    char *line = memmem(client->in.data + at, client->in.length - at, "\r\n", 2);
    if (!line) return 0;
    size_t size = strtoul(client->in.data + at, NULL, 16);
    size_t end = line + 2 - client->in.data + size + 2;
    if (client->in.length < end) return 0;
    client->scanned = at = end;
    if (size == 0) return end;
  }
}

/* Answers whole requests; false when the client is gone. */
static bool serve(Client *client) {
  while (!client->streaming && client->in.length) {
    size_t head = head_length(client->in.data, client->in.length);
    if (!head) return true;
    const char *length = header(client->in.data, head, "\ncontent-length:");
    bool chunked = header(client->in.data, head, "\ntransfer-encoding:") != NULL;
    size_t total = chunked ? chunked_end(client, head) : head + (length ? strtoul(length, NULL, 10) : 0);
    if (!total || client->in.length < total) return true;
    if (!answer(client, head, total)) return false;
  }
  return true;
}

static bool handle(Client *client, unsigned events) {
  if (events & EPOLLOUT) {
    if (!flush(client)) return false;
    if (!client->out.length) {
      watch(epoll_fd, EPOLL_CTL_MOD, client->socket, EPOLLIN, client);
      if (client->streaming && client->pace == 0 && !stream_on(client)) return false;
    }
  }
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) && buffer_fill(&client->in, client->socket)) return false;
  return serve(client);
}

static void tick(int timer) {
  unsigned long long expired;
  if (read(timer, &expired, sizeof expired) < 0) return;
  double now = seconds();
  for (Client *client = paced, *next; client; client = next) {
    next = client->next;
    if (client->due <= now && client->out.length == 0 && !stream_on(client)) drop(client);
  }
}

static void accept_all(int listener) {
  for (int socket; (socket = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
    no_delay(socket);
    Client *client = calloc(1, sizeof *client);
    client->socket = socket;
    watch(epoll_fd, EPOLL_CTL_ADD, socket, EPOLLIN, client);
  }
}

static size_t chunk(char *into, const char *data) {
  return sprintf(into, "%zx\r\n%s\r\n", strlen(data), data);
}

#define HEAD "{\"id\":\"chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG\",\"object\":\"chat.completion"
#define MORE ",\"created\":1741570283,\"model\":\"gpt-4o-mini-2024-07-18\","

static void prepare(void) {
  const char *body =
      HEAD "\"" MORE "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"
      "\"A wooden boardwalk leads through a green field under a wide sky.\",\"refusal\":null,"
      "\"annotations\":[]},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1117,"
      "\"completion_tokens\":46,\"total_tokens\":1163,\"prompt_tokens_details\":{\"cached_tokens\":0,"
      "\"audio_tokens\":0},\"completion_tokens_details\":{\"reasoning_tokens\":0,\"audio_tokens\":0}},"
      "\"service_tier\":\"default\",\"system_fingerprint\":\"fp_fc9f1d7035\"}";
  reply_length = sprintf(reply,
                         "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-request-id: req_0123456789\r\n"
                         "openai-processing-ms: 1\r\nContent-Length: %zu\r\n\r\n%s",
                         strlen(body), body);
  head_size = sprintf(stream_head,
                      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                      "Cache-Control: no-cache\r\nx-request-id: req_0123456789\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n");
  event_length = chunk(event, "data: " HEAD ".chunk\"" MORE
                              "\"service_tier\":\"default\",\"system_fingerprint\":\"fp_fc9f1d7035\",\"choices\":["
                              "{\"index\":0,\"delta\":{\"content\":\" token\"},\"logprobs\":null,"
                              "\"finish_reason\":null}]}\n\n");
  ending_length = chunk(ending, "data: " HEAD ".chunk\"" MORE
                                "\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":"
                                "{\"prompt_tokens\":19,\"completion_tokens\":100,\"total_tokens\":119}}\n\n");
  ending_length += chunk(ending + ending_length, "data: [DONE]\n\n");
  ending_length += sprintf(ending + ending_length, "0\r\n\r\n");
}

int main(int count, char **words) {
  if (count != 2) return fprintf(stderr, "upstream PORT\n"), 2;
  many_files();
  prepare();
  int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in address = loopback(atoi(words[1]));
  if (bind(listener, (void *)&address, sizeof address) || listen(listener, 4096)) return perror("listen"), 1;
  epoll_fd = epoll_create1(0);
  int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  struct itimerspec every = {{0, TICK_NS}, {0, TICK_NS}}, never = {{0, 0}, {0, 0}};
  watch(epoll_fd, EPOLL_CTL_ADD, listener, EPOLLIN, &listener);
  watch(epoll_fd, EPOLL_CTL_ADD, timer, EPOLLIN, &timer);
  bool ticking = false;
  struct epoll_event events[256];
  for (;;) {
    int ready = epoll_wait(epoll_fd, events, 256, -1);
    for (int i = 0; i < ready; i++) {
      void *what = events[i].data.ptr;
      if (what == &listener) accept_all(listener);
      else if (what != &timer && !handle(what, events[i].events)) drop(what);
    }
    for (int i = 0; i < ready; i++) /* last, because it may drop clients that have events here */
      if (events[i].data.ptr == &timer) tick(timer);
    if (ticking != (paced != NULL)) {
      ticking = !ticking;
      timerfd_settime(timer, 0, ticking ? &every : &never, NULL);
    }
  }
}
