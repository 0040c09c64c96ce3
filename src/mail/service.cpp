#include "mail/service.h"

#include <algorithm>

#include "base/ids.h"
#include "base/log.h"
#include "base/text.h"
#include "mime/message.h"

namespace tabella::mail {

using store::Async;
using store::error_of;

namespace {

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

}  // namespace

Mail::Mail(store::Store& store, const Clock& clock, ServiceOptions options)
    : store_(store),
      clock_(clock),
      options_(std::move(options)),
      index_(store, options_.index),
      granularities_(static_cast<unsigned>(trait_of(options_.granularity) | trait_of(Granularity::day))),
      settle_(options_.settle.count()) {}

std::vector<store::TablePlan> Mail::plans(const ServiceOptions& options) {
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

// While it is there, the indexer does not go past the message: it would not be found.
class Mail::UnderWay {
 public:
  UnderWay(Mail& mail, Nanoseconds created) : mail_(mail) {
    const std::lock_guard lock(mail_.under_way_mutex_);
    place_ = mail_.under_way_.insert(created);
  }
  ~UnderWay() {
    const std::lock_guard lock(mail_.under_way_mutex_);
    mail_.under_way_.erase(place_);
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

 private:
  Mail& mail_;
  std::multiset<Nanoseconds>::iterator place_;
};

Nanoseconds Mail::settled(Nanoseconds settle) const {
  const auto before = now() - settle;
  const std::lock_guard lock(under_way_mutex_);
  return under_way_.empty() ? before : std::min(before, *under_way_.begin());
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

// Gives the message an id and puts it under that. How long it took until it could be seen there.
Async<Elapsed> Mail::put(Message& message) {
  message.created = next_time();
  const UnderWay under_way(*this, message.created);
  message.expires = message.created / kSecond + options_.time_to_live.count();
  message.id = make_id(message.created, options_.hostname);
  const auto begun = clock_.elapsed();
  for (const auto& tag : message.tags) {
    TABELLA_CO_TRY(co_await index_.add_label(tag_label(tag), message.id, message.expires));
  }
  if (before_keeping_) {
    TABELLA_CO_TRY(co_await before_keeping_(message.id));
  }
  auto item = to_item(message, options_.hostname);
  if (!item) co_return store::fail(store::ErrorCode::internal, "the message does not fit into an item");
  TABELLA_CO_TRY(co_await store_.put_item({.table = options_.messages, .item = std::move(*item)}));
  // By both clocks: the one stands still while the machine sleeps, the other may be set.
  co_return std::max(clock_.elapsed() - begun, std::chrono::nanoseconds(now() - message.created));
}

// Whether a message that took so long to arrive is found: our own indexer has waited for it, others have not.
// Somebody who has asked for a longer time to settle is another process.
bool Mail::is_in_time(Elapsed took) const {
  const std::chrono::milliseconds settle(settle_.load());
  const bool alone = !options_.shared && settle == options_.settle;
  return alone || took < settle / 2;
}

// Makes known to all processes which partitions there are, and how far their indexers are to stay behind.
Async<void> Mail::ask_for(uint64_t traits, std::chrono::milliseconds settle) {
  while (true) {
    TABELLA_CO_ASSIGN(auto manifest, co_await index_.manifest());
    observe(manifest);
    if ((manifest.traits & traits) == traits && manifest.settle >= settle.count())
      co_return store::Result<void>();
    manifest.traits |= traits;
    manifest.settle = std::max<int64_t>(manifest.settle, settle.count());
    TABELLA_CO_TRY(co_await index_.commit(std::move(manifest)));
  }
}

Async<void> Mail::join() { return ask_for(trait_of(options_.granularity), options_.settle); }

Async<void> Mail::expect(Granularity granularity) {
  if (granularities_ & trait_of(granularity)) co_return store::Result<void>();
  co_return co_await ask_for(trait_of(granularity), options_.settle);
}

Async<std::string> Mail::take(smtp::Envelope envelope) {
  constexpr int kMostTries = 3;
  constexpr std::chrono::milliseconds kLongestSettle = std::chrono::minutes{5};
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
    auto took = co_await put(message);
    if (!took) ++failed_;
    if (!took) co_return error_of(took);
    if (is_in_time(*took)) break;
    // The indexer of another process may have gone past it: it would not be seen. It comes again, as a newer
    // one, once all have been asked to wait as long as this store needs: so it is not late each time.
    log::warning("the store took long to keep a message: it is stored again as a newer one");
    auto removed = co_await remove_item(message);
    const auto needed = 3 * std::chrono::ceil<std::chrono::milliseconds>(*took);
    if (removed) removed = co_await ask_for(0, std::min(needed, kLongestSettle));
    if (removed && tries < kMostTries) continue;
    ++failed_;
    if (!removed) co_return error_of(removed);
    co_return store::fail(store::ErrorCode::unavailable, "the store takes too long to keep a message");
  }
  ++taken_;
  taken_bytes_ += message.size;
  co_return message.id;
}

void Mail::observe(const search::Manifest& manifest) {
  granularities_ |= static_cast<unsigned>(manifest.traits);
  auto settle = settle_.load();
  while (settle < manifest.settle && !settle_.compare_exchange_weak(settle, manifest.settle)) {
  }
  const auto indexed = created_of(manifest.indexed_to).value_or(0);
  auto last = last_time_.load();
  while (last < indexed && !last_time_.compare_exchange_weak(last, indexed)) {
  }
}

void Mail::write_metrics(metrics::Exposition& out) const {
  out.counter("tabella_mail_messages_total", "Messages taken", static_cast<double>(taken_));
  out.counter("tabella_mail_bytes_total", "Bytes of messages taken", static_cast<double>(taken_bytes_));
  out.counter("tabella_mail_failed_total", "Messages that could not be kept", static_cast<double>(failed_));
}

}  // namespace tabella::mail
