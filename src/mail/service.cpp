#include "mail/service.h"

#include <algorithm>
#include <set>

#include "base/ids.h"
#include "base/log.h"
#include "base/text.h"
#include "mime/message.h"
#include "store/batches.h"
#include "store/rows.h"

namespace tabella::mail {

using item::Item;
using item::Value;
using store::Async;
using store::error_of;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr size_t kMostRecent = 32u << 20;  // bytes of documents of the tail that are kept
constexpr size_t kCut = 24 * 1024;         // of a message that an answer has no room for
constexpr size_t kPageBytes = 64u << 20;   // of raw messages in one answer
// How long a search goes on for an exact total, once it has its page.
constexpr std::chrono::milliseconds kEnough{15};
constexpr Nanoseconds kFurthestBack = 3660 * 86400 * kSecond;

std::unexpected<store::Error> too_late() {
  return store::fail(store::ErrorCode::unavailable, "it took longer than it was given");
}

// Tags that the message itself asks for: X-Tags: one, two
std::vector<std::string> tags_in(std::string_view raw) {
  auto rest = raw.substr(0, std::min<size_t>(raw.find("\r\n\r\n"), 64 * 1024));
  std::vector<std::string> tags;
  // Most messages have none: no need to read their headers.
  if (rest.find("-Tags:") == rest.npos && rest.find("-tags:") == rest.npos &&
      rest.find("-TAGS:") == rest.npos)
    return tags;
  const auto headers = mime::take_headers(rest);
  if (const auto* header = mime::find_header(headers, "x-tags"))
    for (const auto tag : split(header->value, ','))
      if (const auto name = trim(tag); !name.empty() && name.size() <= 100 && tags.size() < 50)
        tags.emplace_back(name);
  std::ranges::sort(tags);
  tags.erase(std::ranges::unique(tags).begin(), tags.end());
  return tags;
}

bool is_gone_segment(const store::Error& error) { return error.code == store::ErrorCode::resource_not_found; }

}  // namespace

Mail::Mail(store::Store& store, const Clock& clock, MailOptions options)
    : store_(store),
      clock_(clock),
      options_(std::move(options)),
      index_(store, options_.index),
      granularities_(own_trait() | 1u << static_cast<unsigned>(Granularity::day)) {}

std::vector<store::TablePlan> Mail::plans(const MailOptions& options) {
  return {messages_plan(options.messages), search::Index::plan(options.index)};
}

Nanoseconds Mail::now() const { return clock_.now().time_since_epoch().count(); }

// Later than all that were given out before, even if the clock stands still.
Nanoseconds Mail::next_time() {
  const auto time = now();
  auto last = last_time_.load();
  while (!last_time_.compare_exchange_weak(last, std::max(time, last + 1))) {
  }
  return std::max(time, last + 1);
}

// A message that does not fit into an item goes into several, before it gets its id: a message that can be
// seen is whole.
Async<void> Mail::put_chunks_if_needed(Message& message) {
  constexpr size_t kSurelyFits = 12 * 1024;  // even if its item holds it once for each level, in UTF-8
  constexpr int64_t kSlack = 600;            // the chunks go after the message, not before
  if (message.raw.size() <= kSurelyFits) co_return store::Result<void>();
  message.id = make_id(now(), options_.hostname);
  message.expires = now() / kSecond + options_.time_to_live.count() + kSlack;
  if (to_item(message, options_.hostname)) co_return store::Result<void>();
  message.body = make_uuid();
  auto chunks = to_chunks(message);
  message.chunks = chunks.size();
  std::vector<store::BatchWrite> writes;
  for (auto& chunk : chunks) writes.push_back({.put = true, .item = std::move(chunk)});
  co_return co_await store::write_all(store_, options_.messages, std::move(writes));
}

// Gives the message an id and puts it under that. False if it took so long that it may not be seen there.
Async<bool> Mail::put(Message& message) {
  message.created = next_time();
  message.expires = message.created / kSecond + options_.time_to_live.count();
  message.id = make_id(message.created, options_.hostname);
  const auto begun = clock_.elapsed();
  for (const auto& tag : message.tags) {
    auto labelled = co_await index_.add_label(tag_label(tag), message.id, message.expires);
    if (!labelled) co_return error_of(labelled);
  }
  if (before_keeping_) {
    auto ready = co_await before_keeping_(message.id);
    if (!ready) co_return error_of(ready);
  }
  auto item = to_item(message, options_.hostname);
  if (!item) co_return store::fail(store::ErrorCode::internal, "the message does not fit into an item");
  auto put = co_await store_.put_item({.table = options_.messages, .item = std::move(*item)});
  if (!put) co_return error_of(put);
  // By both clocks: the one stands still while the machine sleeps, the other may be set.
  const auto patience = options_.settle / 2;
  co_return clock_.elapsed() - begun < patience&& std::chrono::nanoseconds(now() - message.created) <
      patience;
}

Async<std::string> Mail::take(smtp::Envelope envelope) {
  constexpr int kMostTries = 5;
  Message message;
  message.helo = std::move(envelope.helo);
  message.peer = std::move(envelope.peer);
  message.user = std::move(envelope.user);
  message.from = std::move(envelope.from);
  message.to = std::move(envelope.to);
  message.raw = std::move(envelope.data);
  message.size = message.raw.size();
  message.granularity = options_.granularity;
  message.tags = tags_in(message.raw);
  if (auto written = co_await put_chunks_if_needed(message); !written) {
    ++failed_;
    co_return error_of(written);
  }
  for (int tries = 1;; ++tries) {
    auto in_time = co_await put(message);
    if (!in_time || (!*in_time && tries == kMostTries)) ++failed_;
    if (!in_time) co_return error_of(in_time);
    if (*in_time) break;
    if (tries == kMostTries)
      co_return store::fail(store::ErrorCode::unavailable, "the store takes too long to keep a message");
    // The indexer may have gone past it: it would not be seen. It comes again, as a newer one.
    log::warning("the store took long to keep a message: it is stored again as a newer one");
    auto removed = co_await remove_item(message);
    if (!removed) co_return error_of(removed);
  }
  ++taken_;
  taken_bytes_ += message.size;
  co_return message.id;
}

void Mail::heed(const search::Manifest& manifest) {
  granularities_ |= static_cast<unsigned>(manifest.traits);
  const auto indexed = created_of(manifest.indexed_to).value_or(0);
  auto last = last_time_.load();
  while (last < indexed && !last_time_.compare_exchange_weak(last, indexed)) {
  }
}

Async<void> Mail::join() {
  while (true) {
    auto manifest = co_await index_.manifest();
    if (!manifest) co_return error_of(manifest);
    heed(*manifest);
    if ((manifest->traits & own_trait()) && manifest->settle >= options_.settle.count())
      co_return store::Result<void>();
    manifest->traits |= own_trait();
    manifest->settle = std::max<int64_t>(manifest->settle, options_.settle.count());
    auto committed = co_await index_.commit(std::move(*manifest));
    if (!committed) co_return error_of(committed);
  }
}

Async<Snapshot> Mail::snapshot() {
  auto taken = co_await Snapshot::take(index_, clock_);
  if (taken) heed(taken->manifest());
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

store::QueryRequest Mail::query_partition(const std::string& partition, const std::string& after) const {
  store::QueryRequest request;
  request.options.table = options_.messages;
  request.options.consistent = true;
  request.key_condition = after.empty() ? "CreatedDate = :p" : "CreatedDate = :p AND ID > :a";
  auto values = Value::map();
  values.set_member(":p", Value::string(partition));
  if (!after.empty()) values.set_member(":a", Value::string(after));
  request.options.attributes.values = item::encode_item(values);
  return request;
}

Async<std::vector<std::string>> Mail::tail(std::string after) {
  std::vector<std::string> ids;
  const auto seconds = now() / kSecond;
  for (const auto& partition : partitions(after)) {
    auto request = query_partition(partition, after);
    request.options.projection = "ID, Expires";
    auto rows = co_await store::query_all(store_, std::move(request));
    if (!rows) co_return error_of(rows);
    for (const auto& row : *rows) {
      auto id = store::text_of(row, kId);
      if (store::number_of(row, "Expires") > seconds && created_of(id)) ids.push_back(std::move(id));
    }
  }
  std::ranges::sort(ids, std::greater<>());
  co_return ids;
}

// Of one granularity. `complete_to`: up to which id nothing is left out; empty: to the end.
Async<std::vector<Message>> Mail::next_of(Granularity granularity, const std::string& after,
                                          const std::string& until, size_t most, Load load,
                                          std::string& complete_to) {
  std::vector<Message> messages;
  size_t bytes = 0;
  for (const auto& partition : partitions(after, granularity)) {
    auto request = query_partition(partition, after);
    while (true) {
      request.options.limit = static_cast<int64_t>(std::max<size_t>(most - messages.size(), 1));
      auto page = co_await store_.query(request);
      if (!page) co_return error_of(page);
      for (const auto& row : page->items) {
        auto message = to_message(row);
        if (!message) continue;
        if (message->id > until) co_return messages;
        if (load == Load::whole) {
          auto completed = co_await complete(*message);
          if (!completed) co_return error_of(completed);
        }
        bytes += message->raw.size();
        messages.push_back(std::move(*message));
        if (messages.size() < most && bytes < kPageBytes) continue;
        complete_to = messages.back().id;
        co_return messages;
      }
      if (!page->last_key) break;
      request.options.start_key = std::move(page->last_key);
    }
  }
  co_return messages;
}

Async<std::vector<Message>> Mail::next(std::string after, std::string until, size_t most, Load load) {
  std::vector<Message> messages;
  std::string bound;
  for (const auto granularity : kGranularities) {
    std::string complete_to;
    auto some = co_await next_of(granularity, after, until, most, load, complete_to);
    if (!some) co_return error_of(some);
    if (!complete_to.empty()) bound = bound.empty() ? complete_to : std::min(bound, complete_to);
    for (auto& message : *some) messages.push_back(std::move(message));
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
  auto completed = co_await complete(message);
  if (!completed) co_return error_of(completed);
  auto made = std::make_shared<const search::Document>(document_of(message, mime::parse(message.raw)));
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

Async<std::vector<std::string>> Mail::find_in_tail(const Filter& filter, std::string after,
                                                   Deadline deadline) {
  std::vector<std::string> ids;
  const auto seconds = now() / kSecond;
  for (const auto& partition : partitions(after)) {
    auto request = query_partition(partition, after);
    // Page by page: the tail may be long, and its messages large.
    while (true) {
      auto page = co_await store_.query(request);
      if (!page) co_return error_of(page);
      for (const auto& row : page->items) {
        if (SteadyClock::now() > deadline) co_return too_late();
        auto message = to_message(row);
        if (!message || message->expires <= seconds) continue;
        auto made = co_await document(*message);
        if (!made) co_return error_of(made);
        if (matches(filter, **made, labels_of(*message))) ids.push_back(message->id);
      }
      if (!page->last_key) break;
      request.options.start_key = std::move(page->last_key);
    }
  }
  std::ranges::sort(ids, std::greater<>());
  co_return ids;
}

Async<size_t> Mail::count() {
  const Filter any;
  auto page = co_await find(any, 0, 0, Load::head, Deadline::max());
  if (!page) co_return error_of(page);
  co_return page->total;
}

Async<MessagePage> Mail::list(size_t start, size_t limit, Load load, Deadline deadline) {
  const Filter any;
  co_return co_await find(any, start, limit, load, deadline);
}

Async<MessagePage> Mail::find(const Filter& filter, size_t start, size_t limit, Load load, Deadline deadline,
                              Total total) {
  // A segment that was merged away meanwhile: the next look sees the one that took its place.
  for (int tries = 0;; ++tries) {
    auto page = co_await find_once(filter, start, limit, load, deadline, total);
    if (page || !is_gone_segment(page.error()) || tries == 3) co_return page;
  }
}

Async<MessagePage> Mail::find_once(const Filter& filter, size_t start, size_t limit, Load load,
                                   Deadline deadline, Total total) {
  auto taken = co_await snapshot();
  if (!taken) co_return error_of(taken);
  MessagePage page;
  std::vector<std::string> ids;  // of the tail, then those of the page
  const auto& after = taken->manifest().indexed_to;
  if (filter.empty()) {
    auto all = co_await tail(after);
    if (!all) co_return error_of(all);
    ids = std::move(*all);
  } else {
    auto matching = co_await find_in_tail(filter, after, deadline);
    if (!matching) co_return error_of(matching);
    ids = std::move(*matching);
  }
  if (SteadyClock::now() > deadline) co_return too_late();
  const size_t in_tail = ids.size();
  ids.erase(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(std::min(start, in_tail)));
  if (ids.size() > limit) ids.resize(limit);
  const size_t skip = start > in_tail ? start - in_tail : 0;
  if (filter.empty()) {
    page.total = in_tail + taken->count();
    auto entries = co_await taken->list(skip, limit - ids.size());
    if (!entries) co_return error_of(entries);
    for (auto& entry : *entries) ids.push_back(std::move(entry.id));
  } else {
    const auto enough = total == Total::exact ? deadline : SteadyClock::now() + kEnough;
    auto found = co_await taken->find(filter, skip, limit - ids.size(), enough, deadline);
    if (!found) co_return error_of(found);
    page.total = in_tail + found->total;
    page.exact = found->exact;
    for (auto& entry : found->entries) ids.push_back(std::move(entry.id));
  }
  if (SteadyClock::now() > deadline) co_return too_late();
  page.found = ids.size();
  if (!ids.empty()) page.last = ids.back();
  auto messages = co_await load_all(std::move(ids), load);
  if (!messages) co_return error_of(messages);
  page.messages = std::move(*messages);
  co_return page;
}

Async<void> Mail::complete(Message& message) {
  if (message.whole) co_return store::Result<void>();
  auto rows = co_await store::get_all(store_, options_.messages, chunk_keys(message));
  if (!rows) co_return error_of(rows);
  std::ranges::sort(*rows, {}, [](const Item& row) { return store::text_of(row, kId); });
  std::string raw;
  raw.reserve(message.size);
  for (const auto& row : *rows) raw.append(chunk_bytes(row));
  // Somebody is deleting it: how it begins is all there is.
  if (raw.size() != message.size) co_return store::Result<void>();
  message.raw = std::move(raw);
  message.whole = true;
  co_return store::Result<void>();
}

Async<std::optional<Message>> Mail::load(std::string id) {
  if (!created_of(id)) co_return std::nullopt;
  std::vector<std::string> ids;
  ids.push_back(std::move(id));
  auto messages = co_await load_all(ids, Load::whole);
  if (!messages) co_return error_of(messages);
  if (messages->empty()) co_return std::nullopt;
  // All were deleted, and the worker has not got to this one yet.
  auto manifest = co_await index_.manifest();
  if (!manifest) co_return error_of(manifest);
  for (const auto& condemned : manifest->condemned) {
    const auto& segment = condemned.segment;
    if (!condemned.documents || ids.front() < segment.first || ids.front() > segment.last) continue;
    auto entries = co_await index_.entries(segment);
    if (entries && std::ranges::binary_search(*entries, ids.front(), {}, &search::Entry::id))
      co_return std::nullopt;
  }
  co_return std::move(messages->front());
}

Async<std::vector<Message>> Mail::load_all(std::vector<std::string> ids, Load load) {
  constexpr size_t kAtOnce = 100;
  std::vector<Message> messages;
  size_t bytes = 0;
  for (size_t at = 0; at < ids.size(); at += kAtOnce) {
    const std::span some(ids.begin() + static_cast<ptrdiff_t>(at),
                         ids.begin() + static_cast<ptrdiff_t>(std::min(at + kAtOnce, ids.size())));
    auto found = co_await load_some(some, {});
    if (!found) co_return error_of(found);
    for (const auto& id : some) {
      const auto entry = found->find(id);
      if (entry == found->end()) continue;
      auto& message = entry->second;
      // An answer with all of many large messages would not fit into memory: of the last ones there is only
      // how they begin.
      const bool room = ids.size() == 1 || bytes + message.size <= kPageBytes;
      if (load == Load::whole && room) {
        auto completed = co_await complete(message);
        if (!completed) co_return error_of(completed);
      }
      if (!room && message.whole && message.raw.size() > kCut) {
        message.raw.resize(kCut);
        message.raw.shrink_to_fit();
        message.whole = false;
      }
      bytes += message.raw.size();
      messages.push_back(std::move(message));
    }
  }
  co_return messages;
}

// Those that are there, by id.
Async<std::map<std::string, Message>> Mail::load_some(std::span<const std::string> ids,
                                                      std::optional<store::Projection> projection) {
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
    auto rows = co_await store::get_all(store_, options_.messages, std::move(keys), projection);
    if (!rows) co_return error_of(rows);
    for (const auto& row : *rows)
      if (auto message = to_message(row); message && message->expires > seconds)
        found.emplace(message->id, std::move(*message));
  }
  co_return found;
}

// Without its chunks: another item has them.
Async<void> Mail::remove_item(const Message& message) {
  std::vector<std::pair<std::string, int64_t>> ids;
  ids.emplace_back(message.id, message.expires);
  auto said = co_await index_.add_gone(ids);
  if (!said) co_return error_of(said);
  auto removed = co_await store_.delete_item(
      {.table = options_.messages, .key = key_of(message.id, message.granularity)});
  if (!removed) co_return error_of(removed);
  co_return store::Result<void>();
}

Async<bool> Mail::remove(std::string id) {
  auto message = co_await load(id);
  if (!message) co_return error_of(message);
  if (!*message) co_return false;
  std::vector<std::string> ids;
  ids.push_back(std::move(id));
  auto removed = co_await remove_many(std::move(ids));
  if (!removed) co_return error_of(removed);
  co_return true;
}

Async<void> Mail::remove_many(std::vector<std::string> ids, bool noted) {
  constexpr size_t kAtOnce = 100;
  for (size_t at = 0; at < ids.size(); at += kAtOnce) {
    auto removed =
        co_await remove_some(std::span(ids).subspan(at, std::min(kAtOnce, ids.size() - at)), noted);
    if (!removed) co_return error_of(removed);
  }
  co_return store::Result<void>();
}

// First it is said that they are gone — the indexer may be taking them in at this moment — then they go.
Async<void> Mail::remove_some(std::span<const std::string> ids, bool noted) {
  constexpr size_t kMayHaveSeveralRows = 100 * 1024;  // of its document
  // All that is needed to remove it, and little to read.
  store::Projection without_message{.text = "CreatedDate, ID, Expires, Chunks, Body, #size, Tags, #read",
                                    .names = {{"#size", "Size"}, {"#read", kRead}}};
  auto messages = co_await load_some(ids, std::move(without_message));
  if (!messages) co_return error_of(messages);
  std::vector<std::pair<std::string, int64_t>> gone;
  std::vector<std::string> documents;
  std::vector<std::string> large;
  std::vector<store::BatchWrite> deletes;
  std::vector<store::BatchWrite> chunks;
  for (const auto& [id, message] : *messages) {
    gone.emplace_back(id, message.expires);
    documents.push_back(id);
    if (message.size > kMayHaveSeveralRows) large.push_back(id);
    deletes.push_back({.put = false, .item = key_of(id, message.granularity)});
    for (auto& key : chunk_keys(message)) chunks.push_back({.put = false, .item = std::move(key)});
  }
  if (!noted) {
    auto said = co_await index_.add_gone(gone);
    if (!said) co_return error_of(said);
  }
  auto deleted = co_await store::write_all(store_, options_.messages, std::move(deletes));
  if (deleted) deleted = co_await store::write_all(store_, options_.messages, std::move(chunks));
  if (!deleted) co_return error_of(deleted);
  for (const auto& [id, message] : *messages)
    for (const auto& label : labels_of(message)) {
      auto unlabelled = co_await index_.remove_label(label, id);
      if (!unlabelled) co_return error_of(unlabelled);
    }
  co_return co_await index_.remove_documents(documents, large);
}

// The segments go all at once, by a new manifest; their rows and messages follow (mail/indexer.h). The tail
// goes one by one.
Async<void> Mail::remove_all() {
  while (true) {
    auto manifest = co_await index_.manifest();
    if (!manifest) co_return error_of(manifest);
    heed(*manifest);
    auto ids = co_await tail(manifest->indexed_to);
    if (!ids) co_return error_of(ids);
    if (!manifest->segments.empty()) {
      auto next = std::move(*manifest);
      for (auto& segment : next.segments)
        next.condemned.push_back(
            {.segment = std::move(segment), .since = now() / kSecond, .documents = true});
      next.segments.clear();
      auto committed = co_await index_.commit(std::move(next));
      if (!committed) co_return error_of(committed);
      if (!*committed) continue;
    }
    co_return co_await remove_many(std::move(*ids));
  }
}

Async<size_t> Mail::remove_found(Filter filter) {
  constexpr size_t kAtOnce = 500;
  size_t removed = 0;
  while (true) {
    auto page = co_await find(filter, 0, kAtOnce, Load::head, Deadline::max());
    if (!page) co_return error_of(page);
    if (page->found == 0) co_return removed;
    std::vector<std::string> ids;
    for (const auto& message : page->messages) ids.push_back(message.id);
    removed += ids.size();
    auto done = co_await remove_many(std::move(ids));
    if (!done) co_return error_of(done);
  }
}

Async<bool> Mail::set_read(std::string id, bool read) {
  auto message = co_await load(id);
  if (!message) co_return error_of(message);
  if (!*message) co_return false;
  store::UpdateItemRequest request{.table = options_.messages, .key = key_of(id, (*message)->granularity)};
  request.update = "SET #r = :r";
  request.options.condition = "attribute_exists(ID)";
  request.options.attributes.names.emplace().emplace_back("#r", kRead);
  auto values = Value::map();
  values.set_member(":r", Value::boolean(read));
  request.options.attributes.values = item::encode_item(values);
  auto updated = co_await store_.update_item(std::move(request));
  if (!updated && updated.error().code == store::ErrorCode::conditional_check_failed) co_return false;
  if (!updated) co_return error_of(updated);
  auto labelled = read ? co_await index_.add_label(kReadLabel, id, (*message)->expires)
                       : co_await index_.remove_label(kReadLabel, id);
  if (!labelled) co_return error_of(labelled);
  co_return true;
}

Async<bool> Mail::set_tags(std::string id, std::vector<std::string> tags) {
  auto message = co_await load(id);
  if (!message) co_return error_of(message);
  if (!*message) co_return false;
  std::ranges::sort(tags);
  tags.erase(std::ranges::unique(tags).begin(), tags.end());
  store::UpdateItemRequest request{.table = options_.messages, .key = key_of(id, (*message)->granularity)};
  request.update = tags.empty() ? "REMOVE #t" : "SET #t = :t";
  request.options.condition = "attribute_exists(ID)";
  request.options.attributes.names.emplace().emplace_back("#t", kTags);
  if (!tags.empty()) {
    auto values = Value::map();
    values.set_member(":t", Value::set(item::Type::SS, tags));
    request.options.attributes.values = item::encode_item(values);
  }
  auto updated = co_await store_.update_item(std::move(request));
  if (!updated && updated.error().code == store::ErrorCode::conditional_check_failed) co_return false;
  if (!updated) co_return error_of(updated);
  for (const auto& tag : tags) {
    auto labelled = co_await index_.add_label(tag_label(tag), id, (*message)->expires);
    if (!labelled) co_return error_of(labelled);
  }
  for (const auto& tag : (*message)->tags) {
    if (std::ranges::binary_search(tags, tag)) continue;
    auto unlabelled = co_await index_.remove_label(tag_label(tag), id);
    if (!unlabelled) co_return error_of(unlabelled);
  }
  co_return true;
}

Async<std::map<std::string, size_t>> Mail::inboxes() {
  std::map<std::string, size_t> counts;
  std::string after;
  for (int tries = 0;; ++tries) {
    auto taken = co_await snapshot();
    if (!taken) co_return error_of(taken);
    auto keys = co_await taken->keys();
    if (!keys && is_gone_segment(keys.error()) && tries < 3) continue;
    if (!keys) co_return error_of(keys);
    counts = std::move(*keys);
    after = taken->manifest().indexed_to;
    break;
  }
  constexpr size_t kAtOnce = 500;
  const auto seconds = now() / kSecond;
  while (true) {
    auto messages = co_await next(after, "~", kAtOnce, Load::head);
    if (!messages) co_return error_of(messages);
    if (messages->empty()) break;
    for (const auto& message : *messages)
      if (message.expires > seconds)
        for (const auto& key : keys_of(message)) ++counts[key];
    after = messages->back().id;
  }
  std::map<std::string, size_t> inboxes;
  for (auto& [key, count] : counts) inboxes[key.substr(inbox_key("").size())] = count;
  co_return inboxes;
}

void Mail::write_metrics(metrics::Exposition& out) const {
  out.counter("tabella_mail_messages_total", "Messages taken", static_cast<double>(taken_));
  out.counter("tabella_mail_bytes_total", "Bytes of messages taken", static_cast<double>(taken_bytes_));
  out.counter("tabella_mail_failed_total", "Messages that could not be kept", static_cast<double>(failed_));
}

}  // namespace tabella::mail
