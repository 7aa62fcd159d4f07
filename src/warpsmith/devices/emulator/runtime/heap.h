// Device malloc: pieces of one region of device memory, kept in a table on the host side.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "state.h"

namespace ws::heap {

struct Piece {
  uint64_t base = 0, size = 0;
  bool freed = false;
};

uint64_t allocate(uint64_t bytes);        // 0: full
bool release(uint64_t base);              // false: not the start of a live piece
bool find(uint64_t address, Piece* out);  // a live piece
bool find_freed(uint64_t address, Piece* out);
// Stores `good`, a range in the live piece at `base`, in a cache entry; freeing the piece empties it again.
void remember(uint64_t base, ws_range* entry, const ws_range& good);
void watch(ws_range* entries, size_t count);  // a cache of the launch that begins
void unwatch();                               // the launch is over

}  // namespace ws::heap
