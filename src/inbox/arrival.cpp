#include "inbox/arrival.h"

#include <algorithm>

#include <fmt/format.h>

#include "store/conditional.h"
#include "store/pause.h"

namespace tabella::inbox {
namespace {

Tally one_more(bool everyone) {
  return everyone ? Tally{.published = 1} : Tally{.published = 1, .total = 1, .unread = 1, .unseen = 1};
}

}  // namespace

std::vector<store::TransactWrite> arrival(const std::string& table, const Box& box, const Content& content,
                                          int64_t sequence, TimePoint now) {
  const auto tally = one_more(content.everyone);
  std::vector<store::TransactWrite> writes;
  writes.push_back(store::Put(table, message_row(box, content, sequence, epoch_milliseconds(now)))
                       .when(store::absent(kPartition)));
  auto all = arrival_update(table, box, tally, sequence, now);
  if (content.everyone)
    all.when(store::absent(kPublished) || store::less(kPublished, kMostBroadcasts));
  else
    all.when(bell_is_on(content));
  writes.push_back(std::move(all));
  if (!content.category.empty()) writes.push_back(category_update(table, box, content.category, tally));
  return writes;
}

int64_t sequence_in_the_way(const store::Error& error) {
  int64_t latest = 0;
  for (const auto& reason : error.reasons)
    if (reason.item) latest = std::max(latest, sequence_of(*reason.item));
  return latest;
}

bool does_not_want(const store::Error& error, size_t first, const Content& content) {
  const auto counters = first + 1;
  if (content.everyone || error.reasons.size() <= counters) return false;
  const auto& reason = error.reasons[counters];
  // Where there is no row yet only the bell can be in the way.
  return store::failed_its_condition(reason) &&
         (reason.item ? bell_is_off(*reason.item, content) : content.opt_in);
}

bool is_full(const store::Error& error, size_t first, const Content& content) {
  const auto counters = first + 1;
  if (content.everyone && error.reasons.size() > counters && error.reasons[counters].item &&
      store::number_of(*error.reasons[counters].item, kPublished) >= kMostBroadcasts)
    return true;
  const auto end = std::min(error.reasons.size(), first + writes_of_arrival(content));
  for (auto at = first; at < end; ++at)
    if (const auto& code = error.reasons[at].code;
        code == "ValidationError" || code == "ItemCollectionSizeLimitExceeded")
      return true;
  return false;
}

boost::asio::awaitable<void> pause_before(int tries) {
  return store::pause_for(std::chrono::milliseconds(std::min(tries, 20)));
}

store::Error too_many_broadcasts() {
  return {
      store::ErrorCode::validation,
      fmt::format("there are {} messages for everyone in this inbox: redact some, or let them expire sooner",
                  kMostBroadcasts)};
}

store::Error too_busy_to_publish() {
  return {store::ErrorCode::unavailable, "the store is too busy to publish this; try again"};
}

}  // namespace tabella::inbox
