#include "journal/continuity.h"

#include <algorithm>
#include <iterator>

namespace tabella::journal {

namespace {
constexpr size_t kMostHeldBack = 32 << 20;  // bytes
}

bool Continuity::take(Event& event, std::vector<Event>& shown) {
  const auto number = event.number();
  if (batch_ && event.foreign_batch() != batch_->numbers) {
    drop_open_batch();
    // Whoever died in the middle of a batch goes on behind its last row, which may be inside of it.
    if (direction_ == Direction::forward) next_ = std::min(next_, number);
  }
  if (!batch_ && !begin_batch(event)) {
    met_hole_ = met_hole_ || number != next_;
    if (number != next_ && holes_ == Holes::refuse) return false;
    next_ = number;
    if (begin_batch(event)) return take(event, shown);  // behind a hole
    next_ = after(number);
    shown.push_back(std::move(event));
    return true;
  }
  hold_back(event, shown);
  return true;
}

bool Continuity::begin_batch(const Event& event) {
  const auto numbers = event.foreign_batch();
  if (!numbers || numbers == too_large_) return false;
  if (next_ < numbers->first || next_ > numbers->last) return false;  // what comes before it is missing
  batch_ = Batch{.numbers = *numbers};
  return true;
}

uint64_t Continuity::batch_end() const {
  return direction_ == Direction::forward ? batch_->numbers.last : std::max(batch_->numbers.first, lowest_);
}

// They come in order, each once.
void Continuity::hold_back(Event& event, std::vector<Event>& shown) {
  const auto number = event.number();
  const auto begin =
      direction_ == Direction::forward ? std::max(batch_->numbers.first, lowest_) : batch_->numbers.last;
  const auto due = batch_->events.empty() ? begin : after(batch_->events.back().number());
  batch_->broken = batch_->broken || number != due;
  if (batch_->broken) {
    batch_->events = {};  // never to be shown
  } else {
    batch_->bytes += sizeof(Event) + event.row().bytes().size();
    batch_->events.push_back(std::move(event));
  }
  if (number == batch_end()) {
    show_batch(shown);
    drop_open_batch();
  } else if (batch_->bytes > kMostHeldBack && !batch_->broken) {
    show_batch(shown);
    next_ = after(number);
    too_large_ = batch_->numbers;
    batch_.reset();
  }
}

void Continuity::show_batch(std::vector<Event>& shown) {
  std::ranges::move(batch_->events, std::back_inserter(shown));
}

void Continuity::drop_open_batch() {
  next_ = after(batch_end());
  batch_.reset();
}

}  // namespace tabella::journal
