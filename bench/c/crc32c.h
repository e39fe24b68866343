/* CRC-32C: by SSE4.2 in three interleaved lanes, or by table where the processor has no such instruction.
 *
 * The instruction takes three cycles and one may begin in each, so that one lane alone would make the loop slower
 * than it needs to be. The lanes are joined by appending LANE zero bytes to a checksum, which is linear: four tables.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LANE 1024

static uint32_t crc_zeros[4][256], crc_table[256];
static int crc_hardware;

__attribute__((target("sse4.2"))) static uint32_t crc_lane(uint32_t crc, const uint8_t *data, size_t size) {
    uint64_t state = crc, word;
    for (; size >= 8; size -= 8, data += 8) {
        memcpy(&word, data, 8);
        state = __builtin_ia32_crc32di(state, word);
    }
    for (; size; size--, data++) state = __builtin_ia32_crc32qi((uint32_t)state, *data);
    return (uint32_t)state;
}

static inline uint32_t crc_append_lane(uint32_t crc) {
    return crc_zeros[0][crc & 255] ^ crc_zeros[1][crc >> 8 & 255] ^ crc_zeros[2][crc >> 16 & 255] ^ crc_zeros[3][crc >> 24];
}

__attribute__((target("sse4.2"))) static uint32_t crc_sse(uint32_t crc, const uint8_t *data, size_t size) {
    for (; size >= 3 * LANE; size -= 3 * LANE, data += 3 * LANE) {
        uint64_t a = crc, b = 0, c = 0, word;
        for (size_t at = 0; at < LANE; at += 8) {
            memcpy(&word, data + at, 8), a = __builtin_ia32_crc32di(a, word);
            memcpy(&word, data + LANE + at, 8), b = __builtin_ia32_crc32di(b, word);
            memcpy(&word, data + 2 * LANE + at, 8), c = __builtin_ia32_crc32di(c, word);
        }
        crc = crc_append_lane(crc_append_lane((uint32_t)a) ^ (uint32_t)b) ^ (uint32_t)c;
    }
    return crc_lane(crc, data, size);
}

static void crc32c_begin(void) {
    static const uint8_t zeros[LANE];
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
        crc_table[byte] = crc;
    }
    crc_hardware = __builtin_cpu_supports("sse4.2");
    for (int lane = 0; crc_hardware && lane < 4; lane++)
        for (uint32_t byte = 0; byte < 256; byte++) crc_zeros[lane][byte] = crc_lane(byte << 8 * lane, zeros, LANE);
}

static uint32_t crc32c(const uint8_t *data, size_t size) {
    uint32_t crc = ~0u;
    if (crc_hardware) return ~crc_sse(crc, data, size);
    for (; size; size--, data++) crc = crc >> 8 ^ crc_table[(crc ^ *data) & 255];
    return ~crc;
}
