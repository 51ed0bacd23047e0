/*
 * DNS over UDP by sendmmsg and recvmmsg, without offload and with nothing around it: what the
 * kernel's sockets allow.
 *
 *   datagrams answer PORT
 *     answers on 127.0.0.1 until it is killed: each query comes back with QR set
 *   datagrams ask PORT SECONDS SOURCE SOCKETS OUTSTANDING
 *     asks a new query for each response, OUTSTANDING at a time, spread over SOCKETS connected
 *     sockets bound to SOURCE; prints `answered N lost N seconds S`
 *
 * Loopback only. One thread, batches of 64. Responses are counted, neither matched nor timed; when
 * nothing has come for 100 ms, what is outstanding is lost and asked again.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { BATCH = 64, OCTETS_MAX = 1500, SOCKETS_MAX = 256, BUFFER_OCTETS = 4 << 20 };

/* Header with RD, `test-record-1.bench.test` A IN. */
static uint8_t query[] = "\x12\x34\x01\0\0\1\0\0\0\0\0\0\x0dtest-record-1\5bench\4test\0\0\1\0\1";
static uint8_t received[BATCH][OCTETS_MAX];
static struct iovec in_iov[BATCH], out_iov[BATCH];
static struct mmsghdr in[BATCH], out[BATCH];
static struct sockaddr_in peers[BATCH];

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

static struct sockaddr_in loopback(uint32_t address, uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port),
                                .sin_addr.s_addr = address};
}

static int bound(uint32_t address, uint16_t port)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0), octets = BUFFER_OCTETS;
    struct sockaddr_in here = loopback(address, port);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &octets, sizeof octets);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &octets, sizeof octets);
    if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) < 0)
        die("bind");
    return fd;
}

static void send_all(int fd, struct mmsghdr *messages, int count)
{
    for (int sent = 0, more; sent < count; sent += more)
        if ((more = sendmmsg(fd, messages + sent, count - sent, 0)) < 0)
            die("sendmmsg");
}

static void answer(uint16_t port)
{
    int fd = bound(htonl(INADDR_LOOPBACK), port);
    printf("listening\n");
    fflush(stdout);
    for (;;) {
        for (int i = 0; i < BATCH; i++)
            in[i].msg_hdr = (struct msghdr){&peers[i], sizeof peers[i], &in_iov[i], 1, 0, 0, 0};
        int count = recvmmsg(fd, in, BATCH, MSG_WAITFORONE, NULL);
        for (int i = 0; i < count; i++) {
            received[i][2] |= 0x80;
            out_iov[i].iov_base = received[i];
            out_iov[i].iov_len = in[i].msg_len;
            out[i].msg_hdr = in[i].msg_hdr;
            out[i].msg_hdr.msg_iov = &out_iov[i];
        }
        send_all(fd, out, count < 0 ? 0 : count);
    }
}

static void ask_again(struct pollfd *sockets, int count, int outstanding)
{
    for (int i = 0; i < count; i++)
        for (int left = outstanding / count; left > 0; left -= BATCH)
            send_all(sockets[i].fd, out, left < BATCH ? left : BATCH);
}

static void ask(struct pollfd *sockets, int count, int outstanding, double seconds)
{
    unsigned long answered = 0, lost = 0;
    double started = now_seconds(), ended = started + seconds, now;
    for (int i = 0; i < BATCH; i++) {
        out_iov[i] = (struct iovec){query, sizeof query - 1};
        out[i].msg_hdr = (struct msghdr){.msg_iov = &out_iov[i], .msg_iovlen = 1};
        in[i].msg_hdr = (struct msghdr){.msg_iov = &in_iov[i], .msg_iovlen = 1};
    }
    ask_again(sockets, count, outstanding);
    while ((now = now_seconds()) < ended) {
        int got = 0;
        for (int i = 0; i < count; i++) {
            int batch = recvmmsg(sockets[i].fd, in, BATCH, MSG_DONTWAIT, NULL);
            if (batch <= 0)
                continue;
            send_all(sockets[i].fd, out, batch);
            got += batch;
        }
        answered += got;
        if (got == 0 && poll(sockets, count, 100) == 0) {
            lost += outstanding;
            ask_again(sockets, count, outstanding);
        }
    }
    printf("answered %lu lost %lu seconds %.6f\n", answered, lost, now - started);
}

int main(int argc, char **argv)
{
    static struct pollfd sockets[SOCKETS_MAX];
    for (int i = 0; i < BATCH; i++)
        in_iov[i] = (struct iovec){received[i], OCTETS_MAX};
    if (argc == 3 && strcmp(argv[1], "answer") == 0) {
        answer(atoi(argv[2]));
    } else if (argc == 7 && strcmp(argv[1], "ask") == 0) {
        struct sockaddr_in there = loopback(htonl(INADDR_LOOPBACK), atoi(argv[2]));
        int count = atoi(argv[5]);
        if (count < 1 || count > SOCKETS_MAX || ntohl(inet_addr(argv[4])) >> 24 != 127)
            return 2;
        for (int i = 0; i < count; i++) {
            sockets[i] = (struct pollfd){.fd = bound(inet_addr(argv[4]), 0), .events = POLLIN};
            if (connect(sockets[i].fd, (struct sockaddr *)&there, sizeof there) < 0)
                die("connect");
        }
        ask(sockets, count, atoi(argv[6]), atof(argv[3]));
    } else {
        fputs("usage: datagrams answer PORT | ask PORT SECONDS SOURCE SOCKETS OUTSTANDING\n", stderr);
        return 2;
    }
    return 0;
}
