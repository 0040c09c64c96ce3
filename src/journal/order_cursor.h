// Walks over the rows of an order, or of a tag's, in one direction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/layout.h"
#include "journal/order_rows.h"
#include "store/store.h"

namespace tabella::journal {

// On one thread; the store outlives it.
class OrderCursor {
 public:
  struct Options {
    std::string table;
    std::string journal;
    std::string tag;  // empty: all
    Direction direction = Direction::forward;
    // Both are in it. No position beyond them is handed out.
    uint64_t first = 1;
    uint64_t last = 0;
  };
  OrderCursor(store::Store& store, Options options)
      : store_(store),
        options_(std::move(options)),
        at_(is_forward() ? options_.first : options_.last),
        at_end_(options_.first > options_.last || options_.last == 0) {}

  bool at_end() const { return at_end_; }
  // The next runs, in the direction's order, of `rows` rows at most; may be none before the end. A position
  // of all that is in no row is an error that names it.
  store::Async<std::vector<Run>> next(size_t rows);

 private:
  bool is_forward() const { return options_.direction == Direction::forward; }
  bool is_dense() const { return options_.tag.empty(); }
  store::QueryRequest request(size_t rows) const;
  store::Result<void> take(std::vector<Run> row, std::vector<Run>& runs);
  std::unexpected<store::Error> missing() const;

  store::Store& store_;
  const Options options_;
  uint64_t at_;  // the next position that is looked for
  bool begun_ = false;
  bool at_end_;
};

}  // namespace tabella::journal
