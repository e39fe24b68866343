/* The least that a log can do with Produce requests, as the measure of what ours costs beyond it.
 *
 * loop FILE: one connection after the other on a free port, which is printed. Of each Produce request (version 7, one
 * partition) it checks the checksum, sets the base offset in place, appends the batch to FILE and acknowledges it. No
 * producers, no index, no replicas, no other requests. A frame that is no such request ends it.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "crc32c.h"

#define ROOM (4 << 20)

static uint8_t buffer[ROOM];
static uint64_t next_offset;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint16_t get16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }
static uint32_t get32(const uint8_t *at) { return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]; }
static void put32(uint8_t *at, uint32_t value) { value = htonl(value), memcpy(at, &value, 4); }
static void put64(uint8_t *at, uint64_t value) { put32(at, value >> 32), put32(at + 4, (uint32_t)value); }

static void write_all(int to, const uint8_t *data, size_t size) {
    while (size) {
        ssize_t count = write(to, data, size);
        if (count < 0) fail("write");
        data += count, size -= (size_t)count;
    }
}

/* One request, without its size: append it to the file and answer it. */
static void take(uint8_t *frame, size_t size, int file, int client) {
    uint8_t answer[512] = {0};
    uint8_t *end = frame + size, *at = frame + 8;
    if (get16(frame) != 0 || get16(frame + 2) != 7) fail("not Produce 7");
    uint16_t length = get16(at);
    at += 2 + (length == 0xffff ? 0 : length); /* client id */
    length = get16(at);
    at += 2 + (length == 0xffff ? 0 : length) + 6 + 4; /* transactional id, acks and timeout, count of topics */
    const uint8_t *topic = at;
    length = get16(at);
    at += 2 + length + 4; /* count of partitions */
    uint32_t partition = get32(at), batch_size = get32(at + 4);
    uint8_t *batch = at + 8;
    if (length > 200 || batch + batch_size != end || batch_size < 61) fail("a frame that cannot be");
    if (crc32c(batch + 21, batch_size - 21) != get32(batch + 17)) fail("a checksum that does not hold");
    uint64_t base_offset = next_offset;
    put64(batch, base_offset);
    put32(batch + 12, 0);
    next_offset += get32(batch + 23) + 1;
    write_all(file, batch, batch_size);
    uint8_t *out = answer + 4;
    memcpy(out, frame + 4, 4), put32(out + 4, 1), out += 8;
    memcpy(out, topic, 2u + length), out += 2 + length;
    put32(out, 1), put32(out + 4, partition), put64(out + 10, base_offset), put64(out + 18, ~0ull);
    out += 4 + 4 + 2 + 8 + 8 + 8 + 4; /* the log's start offset and the throttle time stay 0 */
    put32(answer, (uint32_t)(out - answer - 4));
    write_all(client, answer, (size_t)(out - answer));
}

static void serve(int client, int file) {
    size_t begin = 0, end = 0;
    for (;;) {
        if (begin == end) begin = end = 0;
        if (ROOM - end < ROOM / 2) memmove(buffer, buffer + begin, end - begin), end -= begin, begin = 0;
        /* Never more than 256 KB at once: what is read should still be in the cache when it is written. */
        ssize_t count = recv(client, buffer + end, ROOM - end < 1 << 18 ? ROOM - end : 1 << 18, 0);
        if (count <= 0) return;
        end += (size_t)count;
        for (uint32_t size; end - begin >= 4 && (size = get32(buffer + begin)) <= end - begin - 4; begin += 4 + size)
            take(buffer + begin + 4, size, file, client);
    }
}

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    int file = argc == 2 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
    if (file < 0) fail("usage: loop FILE");
    crc32c_begin();
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 8)) fail("listen");
    if (getsockname(listener, (struct sockaddr *)&address, &length)) fail("getsockname");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    for (int client; (client = accept(listener, NULL, NULL)) >= 0; close(client)) {
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        serve(client, file);
    }
    return 0;
}
