/* A producer that costs next to nothing: one prepared Produce request, sent again and again.
 *
 * blast PORT FILE BATCH_AT ERROR_AT RECORDS COUNT IN_FLIGHT: FILE holds a request with its size, the batch begins at
 * byte BATCH_AT, and ERROR_AT is where an answer (with its size) has its error code. Each copy gets the next
 * correlation id and sequence (RECORDS further) and its checksum. Prints the nanoseconds until the last answer; an
 * error code ends it.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "crc32c.h"

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void put32(uint8_t *at, uint32_t value) { value = htonl(value), memcpy(at, &value, 4); }
static uint32_t get32(const uint8_t *at) { return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]; }

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint8_t answers[1 << 16];
static size_t have;

/* Wait for at least one answer; returns how many there were. */
static int take_answers(int server, size_t error_at) {
    int count = 0;
    while (!count) {
        ssize_t got = recv(server, answers + have, sizeof answers - have, 0);
        if (got <= 0) fail("the connection ended");
        have += (size_t)got;
        size_t at = 0, size;
        for (; have - at >= 4 && (size = 4u + get32(answers + at)) <= have - at; at += size, count++)
            if (answers[at + error_at] || answers[at + error_at + 1]) {
                fprintf(stderr, "error code %d\n", answers[at + error_at] << 8 | answers[at + error_at + 1]);
                exit(1);
            }
        memmove(answers, answers + at, have -= at);
    }
    return count;
}

int main(int argc, char **argv) {
    if (argc != 8) fail("usage: blast PORT FILE BATCH_AT ERROR_AT RECORDS COUNT IN_FLIGHT");
    static uint8_t request[4 << 20];
    FILE *file = fopen(argv[2], "rb");
    if (!file) fail(argv[2]);
    size_t size = fread(request, 1, sizeof request, file), batch_at = (size_t)atol(argv[3]), error_at = (size_t)atol(argv[4]);
    uint32_t sequence = 0, records = (uint32_t)atol(argv[5]);
    int count = atoi(argv[6]), most = atoi(argv[7]), in_flight = 0, one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t)atoi(argv[1]));
    int server = socket(AF_INET, SOCK_STREAM, 0);
    crc32c_begin();
    if (connect(server, (struct sockaddr *)&address, sizeof address)) fail("connect");
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    uint64_t begun = now_ns();
    for (int sent = 0; sent < count; sent++, in_flight++, sequence += records) {
        while (in_flight >= most) in_flight -= take_answers(server, error_at);
        put32(request + 8, (uint32_t)sent);
        put32(request + batch_at + 53, sequence);
        put32(request + batch_at + 17, crc32c(request + batch_at + 21, size - batch_at - 21));
        for (size_t done = 0; done < size;) {
            ssize_t written = send(server, request + done, size - done, 0);
            if (written <= 0) fail("send");
            done += (size_t)written;
        }
    }
    while (in_flight > 0) in_flight -= take_answers(server, error_at);
    printf("%llu\n", (unsigned long long)(now_ns() - begun));
    return 0;
}
