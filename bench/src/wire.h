/* What both programs need: growing buffers, non-blocking sockets, HTTP heads. */
#ifndef WIRE_H
#define WIRE_H
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  char *data;
  size_t length, room;
} Buffer;

static inline void buffer_reserve(Buffer *buffer, size_t more) {
  if (buffer->length + more < buffer->room) return;
  while (buffer->room <= buffer->length + more) buffer->room = buffer->room ? buffer->room * 2 : 16384;
  buffer->data = realloc(buffer->data, buffer->room);
}

static inline void buffer_append(Buffer *buffer, const char *data, size_t length) {
  buffer_reserve(buffer, length);
  memcpy(buffer->data + buffer->length, data, length);
  buffer->length += length;
}

static inline void buffer_drop(Buffer *buffer, size_t length) {
  memmove(buffer->data, buffer->data + length, buffer->length - length);
  buffer->length -= length;
}

/* Reads until the socket is empty: 0 open, 1 the peer has closed, -1 failed. */
static inline int buffer_fill(Buffer *buffer, int socket) {
  for (;;) {
    buffer_reserve(buffer, 16384);
    ssize_t got = read(socket, buffer->data + buffer->length, buffer->room - buffer->length - 1);
    if (got == 0) return 1;
    if (got < 0) return errno == EAGAIN ? 0 : -1;
    buffer->length += got;
  }
}

static inline double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

static inline void watch(int epoll, int operation, int socket, unsigned events, void *what) {
  struct epoll_event event = {.events = events, .data.ptr = what};
  epoll_ctl(epoll, operation, socket, &event);
}

static inline struct sockaddr_in loopback(int port) {
  return (struct sockaddr_in){.sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static inline void no_delay(int socket) {
  int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static inline void many_files(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/* The length of a message head with its blank line, 0 while it is not whole. */
static inline size_t head_length(const char *data, size_t length) {
  const char *end = memmem(data, length, "\r\n\r\n", 4);
  return end ? end + 4 - data : 0;
}

/* A header's value in a head, or NULL. `name` begins with "\n" and ends with ":". */
static inline const char *header(char *head, size_t length, const char *name) {
  char kept = head[length - 1];
  head[length - 1] = 0;
  const char *found = strcasestr(head, name);
  head[length - 1] = kept;
  return found ? found + strlen(name) : NULL;
}
#endif
