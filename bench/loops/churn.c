/*
 * One DNS query a TCP connection, with nothing around it: what the kernel's sockets allow.
 *
 *   churn answer PORT
 *     answers on 127.0.0.1 until it is killed: each query comes back with QR set
 *   churn ask PORT SECONDS IN_FLIGHT FIRST_SOURCE SOURCES
 *     connects, asks, reads the response and closes, IN_FLIGHT connections at a time, from SOURCES
 *     addresses that begin with FIRST_SOURCE; prints `connections N failed N seconds S`
 *
 * Loopback only. One thread, epoll, no timer for a single connection: a server that does not answer
 * shows as a rate of nothing.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_MAX = 256, MESSAGE_OCTETS_MAX = 2048, DESCRIPTORS_MAX = 1 << 20 };

/* Length prefix, header with RD, `test-record-1.bench.test` A IN. */
static const uint8_t QUERY[] = "\0\x2a\x12\x34\x01\0\0\1\0\0\0\0\0\0\x0dtest-record-1\5bench\4test\0\0\1\0\1";
enum { QUERY_OCTETS = sizeof QUERY - 1 };

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void watch(int epoll, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        die("epoll_ctl");
}

static int listener(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&here, sizeof here) < 0 || listen(fd, 4096) < 0)
        die("listen");
    return fd;
}

/* One whole query a read, which is all that `ask` and a load generator with one query a connection
 * send; anything else ends the connection. */
static void answer_one(int fd)
{
    uint8_t message[MESSAGE_OCTETS_MAX];
    ssize_t octets = recv(fd, message, sizeof message, 0);
    if (octets < 0 && errno == EAGAIN)
        return;
    if (octets < 14 || (message[0] << 8 | message[1]) != octets - 2) {
        close(fd);
        return;
    }
    message[4] |= 0x80;
    if (send(fd, message, octets, MSG_NOSIGNAL) != octets)
        close(fd);
}

static void answer(uint16_t port)
{
    int epoll = epoll_create1(0), listening = listener(port);
    struct epoll_event events[EVENTS_MAX];
    watch(epoll, listening, EPOLLIN);
    puts("listening");
    fflush(stdout);
    for (;;) {
        int count = epoll_wait(epoll, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd != listening) {
                answer_one(fd);
                continue;
            }
            int accepted;
            while ((accepted = accept4(listening, NULL, NULL, SOCK_NONBLOCK)) >= 0)
                watch(epoll, accepted, EPOLLIN);
        }
    }
}

struct asking {
    int epoll;
    uint16_t port;
    uint32_t first_source, sources, next_source;
    unsigned long done, failed;
};

/* Indexed by descriptor: whether its query has gone. */
static uint8_t has_asked[DESCRIPTORS_MAX];

static void open_one(struct asking *run)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
    if (fd < 0 || fd >= DESCRIPTORS_MAX)
        die("socket");
    struct sockaddr_in from = {.sin_family = AF_INET};
    from.sin_addr.s_addr = htonl(run->first_source + run->next_source++ % run->sources);
    /* The port is chosen by connect, which can take one again that is in TIME_WAIT. */
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) < 0)
        die("bind");
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(run->port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0 && errno != EINPROGRESS)
        die("connect");
    has_asked[fd] = 0;
    watch(run->epoll, fd, EPOLLIN | EPOLLOUT | EPOLLET);
}

/* True once the connection is over. */
static int go_on(struct asking *run, int fd, uint32_t events)
{
    uint8_t message[MESSAGE_OCTETS_MAX];
    if (!has_asked[fd] && events & EPOLLOUT && !(events & EPOLLERR)) {
        has_asked[fd] = 1;
        if (send(fd, QUERY, QUERY_OCTETS, MSG_NOSIGNAL) == QUERY_OCTETS)
            return 0;
    } else if (has_asked[fd]) {
        ssize_t octets = recv(fd, message, sizeof message, 0);
        if (octets < 0 && errno == EAGAIN)
            return 0;
        if (octets > 14 && message[2] == QUERY[2] && message[3] == QUERY[3]) {
            run->done++;
            close(fd);
            return 1;
        }
    }
    run->failed++;
    close(fd);
    return 1;
}

static void ask(struct asking *run, double seconds, int in_flight)
{
    struct epoll_event events[EVENTS_MAX];
    double started = now_seconds(), ended;
    for (int i = 0; i < in_flight; i++)
        open_one(run);
    while ((ended = now_seconds()) - started < seconds) {
        int count = epoll_wait(run->epoll, events, EVENTS_MAX, 100);
        for (int i = 0; i < count; i++)
            if (go_on(run, events[i].data.fd, events[i].events))
                open_one(run);
    }
    printf("connections %lu failed %lu seconds %.6f\n", run->done, run->failed, ended - started);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "answer") == 0) {
        answer(atoi(argv[2]));
    } else if (argc == 7 && strcmp(argv[1], "ask") == 0) {
        struct asking run = {.epoll = epoll_create1(0), .port = atoi(argv[2])};
        run.first_source = ntohl(inet_addr(argv[5]));
        run.sources = atoi(argv[6]);
        if (run.first_source >> 24 != 127 || run.sources == 0)
            return 2;
        ask(&run, atof(argv[3]), atoi(argv[4]));
    } else {
        fputs("usage: churn answer PORT | ask PORT SECONDS IN_FLIGHT SOURCE SOURCES\n", stderr);
        return 2;
    }
    return 0;
}
