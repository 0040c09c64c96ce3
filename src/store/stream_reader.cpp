#include "store/stream_reader.h"

#include <algorithm>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/ids.h"
#include "base/log.h"

namespace tabella::store {

namespace asio = boost::asio;
using asio::awaitable;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kFirstPause{20};
constexpr milliseconds kLongestPause{5000};
constexpr milliseconds kLongestWait{500};

StreamReader::Options with_worker(StreamReader::Options options) {
  if (options.worker.empty()) options.worker = make_uuid();
  return options;
}

const Lease* find(const std::vector<Lease>& leases, std::string_view shard) {
  const auto at = std::ranges::find_if(leases, [&](const Lease& l) { return l.shard == shard; });
  return at == leases.end() ? nullptr : &*at;
}

// The shards that can be read now: not handled to their end, their parents gone or handled to theirs.
std::vector<ShardDescription> ready_shards(const std::vector<ShardDescription>& shards,
                                           const std::vector<Lease>& leases) {
  const auto finished = [&](std::string_view shard) {
    const auto* lease = find(leases, shard);
    return lease && lease->finished;
  };
  const auto gone = [&](std::string_view shard) {
    return std::ranges::none_of(shards, [&](const auto& s) { return s.id == shard; });
  };
  std::vector<ShardDescription> ready;
  for (const auto& shard : shards)
    if (!finished(shard.id) && (!shard.parent || gone(*shard.parent) || finished(*shard.parent)))
      ready.push_back(shard);
  return ready;
}

}  // namespace

struct StreamReader::Held {
  Lease lease;
  Elapsed renewed;      // when the renewal that holds was begun
  bool lost = false;    // somebody else has it
  bool wanted = false;  // somebody else should have it
  bool finished = false;
  std::optional<std::string> iterator;
};

StreamReader::StreamReader(Store& store, const Clock& clock, Options options, Handler handler)
    : store_(store),
      clock_(clock),
      options_(with_worker(std::move(options))),
      handler_([each = std::move(handler)](const std::string&, std::span<const StreamRecord> records) {
        return each(records.front());
      }),
      in_batches_(false) {}

StreamReader::StreamReader(Store& store, const Clock& clock, Options options, BatchHandler handler)
    : store_(store),
      clock_(clock),
      options_(with_worker(std::move(options))),
      handler_(std::move(handler)),
      in_batches_(true) {}

StreamReader::~StreamReader() = default;

void StreamReader::stop() {
  stopping_ = true;
  if (wake_) wake_->cancel();
}

bool StreamReader::may_go_on(const Held& held) const {
  return !stopping_ && !held.lost && !held.wanted && clock_.elapsed() - held.renewed < options_.lease;
}

awaitable<void> StreamReader::pause(milliseconds length) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  while (length > milliseconds{0} && !stopping_) {
    const auto part = std::min(length, milliseconds{50});
    timer.expires_after(part);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    length -= part;
  }
}

awaitable<void> StreamReader::run() {
  // The timer goes with this coroutine, wherever that ends.
  struct Wake {
    Wake(asio::steady_timer*& pointer, const asio::any_io_executor& executor)
        : shown(pointer), timer(executor) {
      shown = &timer;
    }
    ~Wake() { shown = nullptr; }
    Wake(const Wake&) = delete;
    Wake& operator=(const Wake&) = delete;
    asio::steady_timer*& shown;
    asio::steady_timer timer;
  };
  const Wake wake(wake_, co_await asio::this_coro::executor);
  bool table_made = false;
  while (!stopping_) {
    std::string failure;
    try {
      if (!table_made) {
        const auto made = co_await prepare_tables(store_, {Leases::plan(options_.lease_table)},
                                                  Missing::create, [this] { return stopping_; });
        if (!made) failure = made.error().message;
        table_made = made.has_value();
      }
      if (table_made)
        if (const auto looked = co_await poll(); !looked) failure = looked.error().message;
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (!failure.empty())
      log::warning("the stream of {} for {}: {}", options_.table, options_.consumer, failure);
    if (stopping_) break;
    if (std::exchange(woken_, false)) continue;
    wake_->expires_after(std::min(options_.lease / 4, 2 * kLongestWait));
    co_await wake_->async_wait(asio::as_tuple(asio::use_awaitable));
  }
  while (reading_ > 0) {
    wake_->expires_after(kLongestWait);
    co_await wake_->async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

// A table that was given a new stream has the old one read to its end first.
Async<void> StreamReader::poll() {
  // What is held comes first: nothing else that fails may cost a lease.
  for (auto& stream : streams_) TABELLA_CO_TRY(co_await renew_held(stream));
  TABELLA_CO_TRY(co_await find_streams());
  for (auto& stream : streams_) {
    TABELLA_CO_ASSIGN(const auto all_read, co_await take_shards(stream));
    if (!all_read) break;
  }
  co_return Result<>{};
}

Async<void> StreamReader::find_streams() {
  ListStreamsRequest request{.table = options_.table};
  std::vector<StreamSummary> found;
  while (true) {
    TABELLA_CO_ASSIGN(auto page, co_await store_.list_streams(request));
    std::ranges::move(page.streams, std::back_inserter(found));
    if (!page.last) break;
    request.start = std::move(page.last);
  }
  std::ranges::sort(found, {}, &StreamSummary::label);
  for (const auto& summary : found) {
    if (std::ranges::any_of(streams_, [&](const Stream& s) { return s.arn == summary.arn; })) continue;
    streams_.push_back(
        {.arn = summary.arn,
         .leases = std::make_unique<Leases>(store_, clock_, options_.lease_table, options_.consumer,
                                            summary.arn, options_.worker, options_.lease)});
  }
  std::erase_if(streams_, [&](const Stream& s) {
    return s.held.empty() && std::ranges::none_of(found, [&](const auto& f) { return f.arn == s.arn; });
  });
  co_return Result<>{};
}

Async<std::pair<std::vector<ShardDescription>, bool>> StreamReader::shards_of(const std::string& arn) {
  DescribeStreamRequest request{.arn = arn};
  std::vector<ShardDescription> shards;
  while (true) {
    TABELLA_CO_ASSIGN(auto page, co_await store_.describe_stream(request));
    std::ranges::move(page.shards, std::back_inserter(shards));
    if (!page.last_shard) co_return std::pair(std::move(shards), page.enabled);
    request.start = std::move(page.last_shard);
  }
}

Async<void> StreamReader::renew_held(Stream& stream) {
  // A shard may be let go of while we wait: the list is looked at by what it was.
  const auto held_now = stream.held;
  for (const auto& [shard, held] : held_now) {
    const auto begun = clock_.elapsed();
    TABELLA_CO_ASSIGN(auto renewed, co_await stream.leases->renew(held->lease));
    if (!renewed) {
      held->lost = !held->finished;
      continue;
    }
    held->renewed = begun;
    held->wanted = !renewed->wanted_by.empty() && renewed->wanted_by != options_.worker;
  }
  co_return Result<>{};
}

// Takes this reader's share of the shards. True if the stream is over and all of it has been handled.
Async<bool> StreamReader::take_shards(Stream& stream) {
  TABELLA_CO_ASSIGN(auto described, co_await shards_of(stream.arn));
  const auto& [shards, enabled] = described;
  TABELLA_CO_ASSIGN(auto leases, co_await stream.leases->list());
  const auto ready = ready_shards(shards, leases);
  for (const auto& lease : leases) {
    const bool trimmed = std::ranges::none_of(shards, [&](const auto& s) { return s.id == lease.shard; });
    if (lease.finished && trimmed) co_await stream.leases->forget(lease);
  }

  std::map<std::string, size_t> holders;  // who else is alive, and what they hold
  for (const auto& lease : leases)
    if (!lease.finished && !lease.owner.empty() && lease.owner != options_.worker &&
        !stream.leases->can_be_taken(lease))
      ++holders[lease.owner];
  const size_t share = (ready.size() + holders.size()) / (holders.size() + 1);
  for (const auto& shard : ready) {
    if (stopping_ || stream.held.size() >= share) break;
    if (stream.held.contains(shard.id)) continue;
    const auto* lease = find(leases, shard.id);
    if (lease && !stream.leases->can_be_taken(*lease) && lease->owner != options_.worker) continue;
    const auto begun = clock_.elapsed();
    TABELLA_CO_ASSIGN(auto taken, co_await stream.leases->take(lease ? *lease : Lease{.shard = shard.id}));
    if (taken) hold(stream, std::move(*taken), begun);
  }
  if (stream.held.size() < share) {
    // Whoever holds the most gives one up.
    const auto most = std::ranges::max_element(holders, {}, [](const auto& h) { return h.second; });
    if (most != holders.end() && most->second > stream.held.size() + 1)
      for (const auto& lease : leases)
        if (lease.owner == most->first && !lease.finished && lease.wanted_by.empty()) {
          TABELLA_CO_TRY(co_await stream.leases->ask_for(lease));
          break;
        }
  }
  co_return !enabled && ready.empty();
}

void StreamReader::hold(Stream& stream, Lease lease, Elapsed since) {
  const auto held = std::make_shared<Held>(Held{.lease = std::move(lease), .renewed = since});
  stream.held.insert_or_assign(held->lease.shard, held);
  ++reading_;
  asio::co_spawn(wake_->get_executor(), read_shard(stream, held),
                 [this, &stream, held](const std::exception_ptr&) {
                   stream.held.erase(held->lease.shard);
                   --reading_;
                   woken_ = true;  // there may be children to read, or a stop to finish
                   if (wake_) wake_->cancel();
                 });
}

awaitable<void> StreamReader::read_shard(Stream& stream, std::shared_ptr<Held> held) {
  auto wait = kFirstPause;
  while (may_go_on(*held) && !held->finished) {
    std::string failure;
    try {
      const auto read = co_await read_batch(stream, *held);
      if (!read) failure = read.error().message;
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (failure.empty()) {
      wait = kFirstPause;
      continue;
    }
    log::warning("shard {} of {} for {}: {}", held->lease.shard, options_.table, options_.consumer, failure);
    held->iterator.reset();
    co_await pause(wait);
    wait = std::min(wait * 2, kLongestPause);
  }
  if (held->lost || held->finished) co_return;
  try {
    co_await stream.leases->release(held->lease);
  } catch (const std::exception& error) {
    log::warning("shard {} was not given back, and waits for its lease to end: {}", held->lease.shard,
                 error.what());
  }
}

// From the last checkpoint on; from the beginning of what there still is, if that is later.
Async<std::string> StreamReader::iterator_for(const std::string& arn, const Held& held) {
  GetShardIteratorRequest request{.arn = arn, .shard = held.lease.shard};
  if (!held.lease.checkpoint.empty()) {
    request.type = IteratorType::after_sequence_number;
    request.sequence = held.lease.checkpoint;
    auto iterator = co_await store_.get_shard_iterator(request);
    if (iterator || iterator.error().code != ErrorCode::trimmed_data_access) co_return iterator;
    log::warning("shard {} of {} for {}: records were trimmed before they were handled", held.lease.shard,
                 options_.table, options_.consumer);
  }
  request.type = IteratorType::trim_horizon;
  request.sequence.reset();
  co_return co_await store_.get_shard_iterator(request);
}

Async<void> StreamReader::read_batch(Stream& stream, Held& held) {
  if (!held.iterator) {
    auto iterator = co_await iterator_for(stream.arn, held);
    // A shard that is gone has nothing left to handle.
    if (!iterator && iterator.error().code == ErrorCode::resource_not_found)
      co_return co_await check_point(stream, held, held.lease.checkpoint, true);
    if (!iterator) co_return std::unexpected(std::move(iterator).error());
    held.iterator = std::move(*iterator);
  }
  auto batch = co_await store_.get_records({.iterator = *held.iterator, .limit = options_.batch});
  if (!batch) {
    held.iterator.reset();
    if (batch.error().code == ErrorCode::expired_iterator) co_return Result<>{};
    co_return std::unexpected(std::move(batch).error());
  }
  std::string handled;
  bool all = true;
  const std::span<const StreamRecord> records = batch->records;
  const size_t step = in_batches_ ? records.size() : 1;
  for (size_t at = 0; at < records.size(); at += step) {
    const auto some = records.subspan(at, step);
    all = co_await handle(some, held);
    if (!all) break;
    handled = some.back().sequence;
  }
  const bool finished = all && !batch->next;
  if (!handled.empty() || finished) {
    const auto mark = handled.empty() ? held.lease.checkpoint : handled;
    TABELLA_CO_TRY(co_await check_point(stream, held, mark, finished));
  }
  // What was left off comes again, from the checkpoint on.
  held.iterator = all ? std::move(batch->next) : std::nullopt;
  if (!held.iterator || !may_go_on(held)) co_return Result<>{};
  if (batch->records.empty())
    co_await store_.wait_for_records(*held.iterator, std::min(options_.lease / 4, kLongestWait));
  else if (std::ssize(batch->records) < options_.batch)
    co_await pause(options_.gather);
  co_return Result<>{};
}

Async<void> StreamReader::check_point(Stream& stream, Held& held, std::string sequence, bool finished) {
  const auto begun = clock_.elapsed();
  TABELLA_CO_ASSIGN(auto marked,
                    co_await stream.leases->checkpoint(held.lease, std::move(sequence), finished));
  held.lost = !marked;
  if (held.lost) co_return Result<>{};
  held.lease = std::move(*marked);
  held.renewed = begun;
  held.finished = finished;
  co_return Result<>{};
}

// False if it was left off, because the reader stops or has lost the shard.
awaitable<bool> StreamReader::handle(std::span<const StreamRecord> records, const Held& held) {
  const auto& first = records.front().sequence;
  for (auto wait = kFirstPause; may_go_on(held); wait = std::min(wait * 2, kLongestPause)) {
    try {
      co_await handler_(held.lease.shard, records);
      co_return true;
    } catch (const std::exception& error) {
      log::warning("{} failed at record {} of {}, and tries again: {}", options_.consumer, first,
                   options_.table, error.what());
    } catch (...) {
      log::warning("{} failed at record {} of {}, and tries again", options_.consumer, first, options_.table);
    }
    co_await pause(wait);
  }
  co_return false;
}

}  // namespace tabella::store
