// How messages are found again: the index and the tail together.
#include <algorithm>
#include <iterator>

#include "mail/service.h"
#include "mime/message.h"
#include "store/rows.h"

namespace tabella::mail {

using item::Item;
using store::Async;
using store::error_of;

namespace {

constexpr size_t kMostRecent = 32u << 20;    // bytes of documents of the tail that are kept
constexpr size_t kPageBytes = 4u << 20;      // of messages that a page has in memory, and a few more
constexpr size_t kIndexedBytes = 64u << 20;  // of messages that are indexed together
constexpr Nanoseconds kFurthestBack = 3660 * 86400 * kSecond;

bool is_gone_segment(const store::Error& error) { return error.code == store::ErrorCode::resource_not_found; }

}  // namespace

Async<Snapshot> Mail::snapshot(Pace& pace) {
  auto taken = co_await Snapshot::take(index_, clock_, pace);
  if (taken) observe(taken->manifest());
  co_return taken;
}

// The partitions that may have messages behind an id, oldest first.
std::vector<std::string> Mail::partitions(std::string_view after, Granularity granularity) const {
  if (!(granularities_ >> static_cast<unsigned>(granularity) & 1)) return {};
  const auto until = std::max(now(), last_time_.load()) + 60 * kSecond;
  const auto extent =
      std::min<Nanoseconds>(options_.time_to_live.count() * kSecond + 86400 * kSecond, kFurthestBack);
  return partitions_between(std::max(created_of(after).value_or(0), until - extent), until, granularity);
}

// Of all granularities, in no order.
std::vector<std::string> Mail::partitions(std::string_view after) const {
  std::vector<std::string> names;
  for (const auto granularity : kGranularities)
    for (auto& name : partitions(after, granularity)) names.push_back(std::move(name));
  return names;
}

store::Query Mail::query_partition(const std::string& partition, const std::string& after) const {
  auto query = store::Query(options_.messages).partition(kPartition, partition).consistent();
  if (!after.empty()) query.after(kId, after);
  return query;
}

Async<std::vector<std::string>> Mail::tail(std::string after, Pace& pace) {
  std::vector<std::string> ids;
  const auto seconds = now() / kSecond;
  for (const auto& partition : partitions(after)) {
    store::QueryRequest request = query_partition(partition, after).only({kId, "Expires"});
    while (true) {
      if (!co_await pace.go_on()) co_return search::too_late();
      TABELLA_CO_ASSIGN(auto page, co_await store_.query(request));
      for (const auto& row : page.items) {
        auto id = store::text_of(row, kId);
        if (store::number_of(row, "Expires") > seconds && created_of(id)) ids.push_back(std::move(id));
      }
      if (!page.last_key) break;
      request.options.start_key = std::move(page.last_key);
    }
  }
  std::ranges::sort(ids, std::greater<>());
  co_return ids;
}

// Of one granularity. `complete_to`: up to which id nothing is left out; empty: to the end.
Async<std::vector<Message>> Mail::next_of(Granularity granularity, const std::string& after,
                                          const std::string& until, size_t most, Load load,
                                          std::string& complete_to, Pace& pace) {
  std::vector<Message> messages;
  size_t bytes = 0;
  for (const auto& partition : partitions(after, granularity)) {
    store::QueryRequest request = query_partition(partition, after);
    while (true) {
      request.options.limit = static_cast<int64_t>(std::max<size_t>(most - messages.size(), 1));
      if (!co_await pace.go_on()) co_return search::too_late();
      TABELLA_CO_ASSIGN(auto page, co_await store_.query(request));
      for (const auto& row : page.items) {
        if (!co_await pace.go_on()) co_return search::too_late();
        auto message = to_message(row);
        if (!message) continue;
        if (message->id > until) co_return messages;
        if (load == Load::whole) {
          TABELLA_CO_TRY(co_await complete(*message));
        }
        bytes += message->raw.size();
        messages.push_back(std::move(*message));
        if (messages.size() < most && bytes < kIndexedBytes) continue;
        complete_to = messages.back().id;
        co_return messages;
      }
      if (!page.last_key) break;
      request.options.start_key = std::move(page.last_key);
    }
  }
  co_return messages;
}

Async<std::vector<Message>> Mail::next(std::string after, std::string until, size_t most, Load load,
                                       Pace& pace) {
  std::vector<Message> messages;
  std::string bound;
  for (const auto granularity : kGranularities) {
    std::string complete_to;
    TABELLA_CO_ASSIGN(auto some, co_await next_of(granularity, after, until, most, load, complete_to, pace));
    if (!complete_to.empty()) bound = bound.empty() ? complete_to : std::min(bound, complete_to);
    for (auto& message : some) messages.push_back(std::move(message));
  }
  std::ranges::sort(messages, {}, &Message::id);
  // Behind where one granularity ends for now, others would come too early.
  if (!bound.empty()) std::erase_if(messages, [&](const Message& message) { return message.id > bound; });
  if (messages.size() > most) messages.resize(most);
  co_return messages;
}

Async<std::shared_ptr<const search::Document>> Mail::document(Message& message) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = recent_.find(message.id); found != recent_.end()) co_return found->second;
  }
  TABELLA_CO_TRY(co_await complete(message));
  const auto make = [&] {
    return std::make_shared<const search::Document>(document_of(message, mime::parse(message.raw)));
  };
  auto made = co_await aside(message.raw.size(), make);
  if (!message.whole) co_return made;
  size_t bytes = 256;
  for (const auto& piece : made->pieces) bytes += piece.text.size() + sizeof piece;
  const std::lock_guard lock(mutex_);
  if (recent_bytes_ + bytes > kMostRecent) {
    recent_.clear();
    recent_bytes_ = 0;
  }
  if (recent_.emplace(message.id, made).second) recent_bytes_ += bytes;
  co_return made;
}

Async<std::vector<std::string>> Mail::find_in_tail(const Filter& filter, std::string after, Pace& pace) {
  std::vector<std::string> ids;
  const auto seconds = now() / kSecond;
  for (const auto& partition : partitions(after)) {
    store::QueryRequest request = query_partition(partition, after);
    // Page by page: the tail may be long, and its messages large.
    while (true) {
      if (!co_await pace.go_on()) co_return search::too_late();
      TABELLA_CO_ASSIGN(auto page, co_await store_.query(request));
      for (const auto& row : page.items) {
        if (!co_await pace.go_on()) co_return search::too_late();
        auto message = to_message(row);
        if (!message || message->expires <= seconds) continue;
        TABELLA_CO_ASSIGN(auto made, co_await document(*message));
        if (matches(filter, *made, labels_of(*message))) ids.push_back(message->id);
      }
      if (!page.last_key) break;
      request.options.start_key = std::move(page.last_key);
    }
  }
  std::ranges::sort(ids, std::greater<>());
  co_return ids;
}

Async<size_t> Mail::count(Deadline deadline) {
  const Filter any;
  TABELLA_CO_ASSIGN(auto page, co_await find(any, 0, 0, Load::keys, deadline));
  co_return page.total;
}

Async<MessagePage> Mail::list(size_t start, size_t limit, Load load, Deadline deadline) {
  const Filter any;
  co_return co_await find(any, start, limit, load, deadline);
}

Async<MessagePage> Mail::find(const Filter& filter, size_t start, size_t limit, Load load,
                              Deadline deadline) {
  Pace pace(deadline);
  // A segment that was merged away meanwhile: the next look sees the one that took its place.
  for (int tries = 0;; ++tries) {
    auto page = co_await find_once(filter, start, limit, load, pace);
    if (page || !is_gone_segment(page.error())) co_return page;
    if (tries == 3)
      co_return store::fail(store::ErrorCode::unavailable,
                            "rows of the search index are missing; tabella mail reindex builds it anew");
  }
}

Async<MessagePage> Mail::find_once(const Filter& filter, size_t start, size_t limit, Load load, Pace& pace) {
  TABELLA_CO_ASSIGN(auto taken, co_await snapshot(pace));
  MessagePage page;
  std::vector<std::string> ids;  // of the tail, then those of the page
  const auto& after = taken.manifest().indexed_to;
  if (filter.empty()) {
    TABELLA_CO_ASSIGN(auto all, co_await tail(after, pace));
    ids = std::move(all);
  } else {
    TABELLA_CO_ASSIGN(auto matching, co_await find_in_tail(filter, after, pace));
    ids = std::move(matching);
  }
  const size_t in_tail = ids.size();
  ids.erase(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(std::min(start, in_tail)));
  if (ids.size() > limit) ids.resize(limit);
  const size_t skip = start > in_tail ? start - in_tail : 0;
  if (filter.empty()) {
    page.total = in_tail + taken.count();
    TABELLA_CO_ASSIGN(auto entries, co_await taken.list(skip, limit - ids.size()));
    for (auto& entry : entries) ids.push_back(std::move(entry.id));
  } else {
    TABELLA_CO_ASSIGN(auto found, co_await taken.find(filter, skip, limit - ids.size(), pace));
    page.total = in_tail + found.total;
    for (auto& entry : found.entries) ids.push_back(std::move(entry.id));
  }
  page.ids = std::move(ids);
  TABELLA_CO_TRY(co_await load_page(page, load, pace));
  co_return page;
}

// As many of its messages as may be in memory at once; of the rest, which are there.
Async<void> Mail::load_page(MessagePage& page, Load load, Pace& pace) {
  std::vector<std::string> missing;
  size_t bytes = 0;
  for (size_t at = 0; at < page.ids.size(); at += kLoadedAtOnce) {
    if (!co_await pace.go_on()) co_return search::too_late();
    const auto some = std::span(page.ids).subspan(at, std::min(kLoadedAtOnce, page.ids.size() - at));
    const bool room = bytes < kPageBytes;
    auto only = load == Load::head && room ? std::vector<std::string>() : without_message();
    TABELLA_CO_ASSIGN(auto rows, co_await read_rows(some, std::move(only)));
    for (const auto& id : some) {
      const auto row = rows.find(id);
      if (row == rows.end()) {
        missing.push_back(id);
      } else if (room) {
        bytes += row->second.raw.size();
        page.messages.push_back(std::move(row->second));
      } else {
        page.later.push_back(id);
      }
    }
  }
  if (missing.empty()) co_return store::Result<void>();
  // The answer is right whether or not it can be written down for the next who asks.
  page.total -= std::min(page.total, missing.size());
  co_await forget(std::move(missing));
  co_return store::Result<void>();
}

Async<void> Mail::complete(Message& message) {
  if (message.whole) co_return store::Result<void>();
  constexpr size_t kAtOnce = 16;  // so that it is in memory once, and not as rows besides
  auto keys = chunk_keys(message);
  std::string raw;
  raw.reserve(message.size);
  for (size_t at = 0; at < keys.size(); at += kAtOnce) {
    const auto begin = keys.begin() + static_cast<ptrdiff_t>(at);
    const auto end = keys.begin() + static_cast<ptrdiff_t>(std::min(at + kAtOnce, keys.size()));
    TABELLA_CO_ASSIGN(auto rows, co_await store::get_all(store_, options_.messages,
                                                         std::vector<Item>(std::make_move_iterator(begin),
                                                                           std::make_move_iterator(end))));
    std::ranges::sort(rows, {}, [](const Item& row) { return store::text_of(row, kId); });
    for (const auto& row : rows) raw.append(chunk_bytes(row));
  }
  // Somebody is deleting it: how it begins is all there is.
  if (raw.size() != message.size) co_return store::Result<void>();
  message.raw = std::move(raw);
  message.whole = true;
  co_return store::Result<void>();
}

// Empty: there is no such message.
Async<std::string> Mail::find_by_short_id(std::string wanted, Pace& pace) {
  if (wanted.find('@') == std::string::npos) co_return std::string();
  for (int tries = 0;; ++tries) {
    TABELLA_CO_ASSIGN(auto taken, co_await snapshot(pace));
    TABELLA_CO_ASSIGN(auto newest, co_await tail(taken.manifest().indexed_to, pace));
    const auto in_tail = std::ranges::find(newest, wanted, short_id);
    if (in_tail != newest.end()) co_return *in_tail;
    Filter filter;
    filter.entry = [&](const search::Entry& entry) { return short_id(entry.id) == wanted; };
    auto found = co_await taken.find(filter, 0, 1, pace);
    if (!found && is_gone_segment(found.error()) && tries < 3) continue;
    if (!found) co_return error_of(found);
    co_return found->entries.empty() ? std::string() : found->entries.front().id;
  }
}

Async<std::optional<Message>> Mail::load(std::string id, Load load) {
  constexpr std::chrono::seconds kPatience{10};
  id = id_of_spelling(id);
  if (!created_of(id)) {
    Pace pace(std::chrono::steady_clock::now() + kPatience);
    TABELLA_CO_ASSIGN(auto found, co_await find_by_short_id(std::move(id), pace));
    if (found.empty()) co_return std::nullopt;
    id = std::move(found);
  }
  std::vector<std::string> ids;
  ids.push_back(std::move(id));
  TABELLA_CO_ASSIGN(auto messages, co_await load_some(ids, load));
  if (messages.empty()) co_return std::nullopt;
  // All were deleted, and the worker has not got to this one yet.
  TABELLA_CO_ASSIGN(auto manifest, co_await index_.manifest());
  for (const auto& condemned : manifest.condemned) {
    const auto& segment = condemned.segment;
    if (!condemned.documents || ids.front() < segment.first || ids.front() > segment.last) continue;
    auto entries = co_await index_.entries(segment);
    if (entries && std::ranges::binary_search(*entries, ids.front(), {}, &search::Entry::id))
      co_return std::nullopt;
  }
  co_return std::move(messages.front());
}

Async<std::vector<Message>> Mail::load_some(std::vector<std::string> ids, Load load) {
  auto only = load == Load::keys ? without_message() : std::vector<std::string>();
  TABELLA_CO_ASSIGN(auto rows, co_await read_rows(ids, std::move(only)));
  std::vector<Message> messages;
  for (const auto& id : ids) {
    const auto row = rows.find(id);
    if (row == rows.end()) continue;
    if (load == Load::whole) {
      TABELLA_CO_TRY(co_await complete(row->second));
    }
    messages.push_back(std::move(row->second));
  }
  co_return messages;
}

// Those that are there, by id.
Async<std::map<std::string, Message>> Mail::read_rows(std::span<const std::string> ids,
                                                      std::vector<std::string> only) {
  std::map<std::string, Message> found;
  const auto seconds = now() / kSecond;
  // Nearly all are in partitions of the granularity that is set; the others are looked for then.
  for (const auto granularity :
       {options_.granularity, Granularity::day, Granularity::half_day, Granularity::hour}) {
    std::vector<Item> keys;
    for (const auto& id : ids)
      if (!found.contains(id) && (granularities_ >> static_cast<unsigned>(granularity) & 1))
        keys.push_back(key_of(id, granularity));
    if (keys.empty()) continue;
    TABELLA_CO_ASSIGN(auto rows, co_await store::get_all(store_, options_.messages, std::move(keys), only));
    for (const auto& row : rows)
      if (auto message = to_message(row); message && message->expires > seconds)
        found.emplace(message->id, std::move(*message));
  }
  co_return found;
}

Async<std::map<std::string, size_t>> Mail::inboxes(Deadline deadline) {
  Pace pace(deadline);
  std::map<std::string, size_t> counts;
  std::string after;
  for (int tries = 0;; ++tries) {
    TABELLA_CO_ASSIGN(auto taken, co_await snapshot(pace));
    auto keys = co_await taken.keys(pace);
    if (!keys && is_gone_segment(keys.error()) && tries < 3) continue;
    if (!keys) co_return error_of(keys);
    counts = std::move(*keys);
    after = taken.manifest().indexed_to;
    break;
  }
  constexpr size_t kAtOnce = 500;
  const auto seconds = now() / kSecond;
  while (true) {
    TABELLA_CO_ASSIGN(auto messages, co_await next(after, "~", kAtOnce, Load::head, pace));
    if (messages.empty()) break;
    for (const auto& message : messages)
      if (message.expires > seconds)
        for (const auto& key : keys_of(message)) ++counts[key];
    after = messages.back().id;
  }
  std::map<std::string, size_t> inboxes;
  for (auto& [key, count] : counts) inboxes[key.substr(inbox_key("").size())] = count;
  co_return inboxes;
}

}  // namespace tabella::mail
