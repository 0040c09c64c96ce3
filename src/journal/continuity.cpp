#include "journal/continuity.h"

#include <algorithm>
#include <iterator>

namespace tabella::journal {

namespace {
constexpr uint64_t kMostInBatch = 100'000;  // a row that says more is not believed
}

bool Continuity::take(Event& event, std::vector<Event>& shown) {
  const auto number = event.number();
  if (batch_ && !belongs_to_batch(event)) {
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
  batch_->events.push_back(std::move(event));
  if (number == batch_end()) end_batch(shown);
  return true;
}

// Ours are whole where the head says that they are there.
bool Continuity::begin_batch(const Event& event) {
  const auto place = event.batch_place();
  if (!place || !event.append_id().empty()) return false;
  if (place->index > place->last || place->index >= event.number() || place->last > kMostInBatch)
    return false;
  const auto first = event.number() - place->index;
  const auto last = first + place->last;
  if (next_ < first || next_ > last) return false;  // what comes before it is missing
  batch_ = Batch{.first = first, .last = last, .events = {}};
  return true;
}

bool Continuity::belongs_to_batch(const Event& event) const {
  const auto place = event.batch_place();
  return place && event.append_id().empty() && place->index <= event.number() &&
         event.number() - place->index == batch_->first && place->last == batch_->last - batch_->first;
}

uint64_t Continuity::batch_end() const {
  return direction_ == Direction::forward ? batch_->last : std::max(batch_->first, lowest_);
}

// They come in order, each once.
void Continuity::end_batch(std::vector<Event>& shown) {
  const bool whole = batch_->events.size() == batch_->last - std::max(batch_->first, lowest_) + 1;
  if (whole)
    shown.insert(shown.end(), std::make_move_iterator(batch_->events.begin()),
                 std::make_move_iterator(batch_->events.end()));
  drop_open_batch();
}

void Continuity::drop_open_batch() {
  next_ = after(batch_end());
  batch_.reset();
}

}  // namespace tabella::journal
