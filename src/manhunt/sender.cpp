#include "manhunt/sender.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/utf8.h"
#include "manhunt/links.h"
#include "store/conditional.h"

namespace tabella::manhunt {

using boost::asio::awaitable;
using std::chrono::milliseconds;
using store::Async;

namespace {

constexpr size_t kMostTries = 8;
constexpr size_t kMostDetail = 500;

AttemptState state_after(const std::vector<Try>& tries) {
  const bool unknown =
      std::ranges::any_of(tries, [](const Try& one) { return one.outcome == Outcome::unknown; });
  return unknown ? AttemptState::unknown : AttemptState::failed;
}

// How often nobody could tell what became of it at the provider of the last try, in a row.
size_t unknown_in_a_row(const std::vector<Try>& tries) {
  size_t count = 0;
  for (auto one = tries.rbegin();
       one != tries.rend() && one->provider == tries.back().provider && one->outcome == Outcome::unknown;
       ++one)
    ++count;
  return count;
}

}  // namespace

Provider* Sender::find(ChannelKind kind, std::string_view name) const {
  for (const auto& provider : providers_)
    if (provider->serves(kind) && provider->name() == name) return provider.get();
  return after(kind, nullptr);
}

Provider* Sender::after(ChannelKind kind, const Provider* provider) const {
  bool found = provider == nullptr;
  for (const auto& each : providers_) {
    if (found && each->serves(kind)) return each.get();
    if (each.get() == provider) found = true;
  }
  return nullptr;
}

std::optional<Try> Sender::first_try(ChannelKind kind) const {
  const auto* const provider = after(kind, nullptr);
  if (!provider) return std::nullopt;
  return Try{.at = epoch_milliseconds(clock_.now()), .provider = std::string(provider->name())};
}

Provider* Sender::next_for(ChannelKind kind, const std::vector<Try>& tries) const {
  if (tries.size() >= kMostTries) return nullptr;
  if (tries.empty()) return after(kind, nullptr);
  auto* const last = find(kind, tries.back().provider);
  // What may have been sent is sent once more, so that it surely was; what was not goes to the next.
  const bool same_again = unknown_in_a_row(tries) == 1;
  return same_again || !last ? last : after(kind, last);
}

Async<void> Sender::write_tries(std::span<const Attempt> attempts) {
  for (const auto& attempt : attempts)
    TABELLA_CO_TRY(
        store::was_made(co_await store_.update_item(tries_update(table_, attempt, attempt.tries.size()))));
  co_return store::Result<void>();
}

// Another try is written down for those whose searches go on, and who are still asked.
Async<size_t> Sender::begin_next(std::span<Attempt> attempts, const Provider& provider) {
  const auto now = epoch_milliseconds(clock_.now());
  size_t active = 0;
  for (auto& attempt : attempts) {
    auto next = attempt;
    next.state = AttemptState::sending;
    next.tries.push_back({.at = now, .provider = std::string(provider.name())});
    std::vector<store::TransactWrite> writes;
    writes.push_back(store::Check(table_, search_key(attempt.search)).when(is_asked(attempt.contact)));
    writes.push_back(tries_update(table_, next, attempt.tries.size()));
    const auto begun =
        co_await store_.transact_write_items({.writes = std::move(writes), .token = make_uuid()});
    if (!begun && !store::failed_its_conditions(begun.error())) co_return store::error_of(begun);
    if (!begun) continue;
    attempt = std::move(next);
    std::swap(attempt, attempts[active++]);
  }
  co_return active;
}

Async<size_t> Sender::begin(std::span<Attempt> attempts) {
  size_t active = 0;
  if (const auto* const provider = next_for(attempts.front().kind, {})) {
    TABELLA_CO_ASSIGN(active, co_await begin_next(attempts, *provider));
  }
  TABELLA_CO_TRY(co_await finish(attempts.subspan(active), false, false));
  co_return active;
}

Async<size_t> Sender::begin_again(std::span<Attempt> attempts) {
  auto* provider = find(attempts.front().kind, attempts.front().tries.back().provider);
  bool crashed = false;
  for (auto& attempt : attempts)
    if (attempt.tries.back().outcome == Outcome::pending) {
      attempt.tries.back().outcome = Outcome::unknown;
      crashed = true;
    }
  // One that has asked to be tried again later is tried again.
  const auto& tries = attempts.front().tries;
  auto* const next = next_for(attempts.front().kind, tries);
  const bool was_refused = tries.back().outcome == Outcome::failed && next;
  if (crashed || was_refused || tries.size() >= kMostTries) provider = next;
  size_t active = 0;
  if (provider) {
    TABELLA_CO_ASSIGN(active, co_await begin_next(attempts, *provider));
  }
  TABELLA_CO_TRY(co_await finish(attempts.subspan(active), false, false));
  co_return active;
}

bool Sender::has_next(const Attempt& attempt) const {
  return next_for(attempt.kind, attempt.tries) != nullptr;
}

Async<void> Sender::give_up(Attempt attempt, std::string why) {
  if (!attempt.tries.empty() && attempt.tries.back().outcome == Outcome::pending)
    attempt.tries.back().outcome = Outcome::unknown;
  co_return co_await finish({&attempt, 1}, false, false, why);
}

Async<std::optional<milliseconds>> Sender::send(std::span<Attempt> attempts, const Message& message) {
  while (true) {
    auto* const provider = find(message.kind, attempts.front().tries.back().provider);
    const auto sent =
        provider ? co_await provider->send(message)
                 : Sent{.outcome = Outcome::failed, .detail = "there is no provider for this channel"};
    for (auto& attempt : attempts) {
      auto& last = attempt.tries.back();
      last.outcome = sent.outcome;
      last.detail = utf8_front(to_valid_utf8(sent.detail), kMostDetail);
      last.reference = utf8_front(to_valid_utf8(sent.reference), kMostDetail);
    }
    const auto& tries = attempts.front().tries;
    if (sent.outcome == Outcome::sent) {
      TABELLA_CO_TRY(co_await finish(attempts, true, provider->is_simulator()));
      co_return std::nullopt;
    }
    const auto* const next = next_for(message.kind, tries);
    if (!next && sent.retry_after && tries.size() < kMostTries) {
      TABELLA_CO_TRY(co_await write_tries(attempts));
      co_return sent.retry_after;
    }
    if (!next) {
      TABELLA_CO_TRY(co_await finish(attempts, false, false));
      co_return std::nullopt;
    }
    TABELLA_CO_ASSIGN(const auto active, co_await begin_next(attempts, *next));
    const auto over = attempts.subspan(active);
    TABELLA_CO_TRY(co_await finish(over, false, false));
    if (active == 0) co_return std::nullopt;
    attempts = attempts.first(active);
  }
}

Async<void> Sender::finish(std::span<Attempt> attempts, bool sent, bool simulated, std::string_view why) {
  for (auto& attempt : attempts) {
    attempt.state = sent                    ? AttemptState::sent
                    : attempt.tries.empty() ? AttemptState::skipped
                                            : state_after(attempt.tries);
    attempt.finished = epoch_milliseconds(clock_.now());
    attempt.simulated = simulated;
    if (!sent)
      attempt.detail = !why.empty()            ? std::string(why)
                       : attempt.tries.empty() ? "nobody was to be asked any more"
                                               : attempt.tries.back().detail;
    TABELLA_CO_ASSIGN(
        const bool made,
        store::was_made(co_await store_.update_item(finish_update(table_, attempt, attempt.tries.size()))));
    if (!made) continue;  // somebody else goes on with it
    if (simulated) TABELLA_CO_TRY(co_await unlist_if_over(attempt));
    ++(attempt.state == AttemptState::sent      ? sent_
       : attempt.state == AttemptState::unknown ? unknown_
                                                : failed_);
  }
  co_return store::Result<void>();
}

// Those that ring when their search ends are taken off the list then; this one came later.
Async<void> Sender::unlist_if_over(const Attempt& attempt) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await store_.get_item({.table = table_, .key = search_key(attempt.search), .consistent = true}));
  const auto search = found.item ? to_search(*found.item) : std::nullopt;
  if (search && search->status == Status::active) co_return store::Result<void>();
  TABELLA_CO_TRY(store::was_made(co_await store_.update_item(unlist_update(table_, attempt))));
  co_return store::Result<void>();
}

awaitable<std::pair<std::string, Sent>> Sender::send_alone(const Message& message) {
  std::pair<std::string, Sent> last{
      "", {.outcome = Outcome::failed, .detail = "there is no provider for this channel"}};
  for (auto* provider = after(message.kind, nullptr); provider; provider = after(message.kind, provider)) {
    last = {std::string(provider->name()), co_await provider->send(message)};
    if (last.second.outcome != Outcome::failed) break;
  }
  co_return last;
}

Occasion Sender::occasion_of(const Search& search, const Contact& contact, const Domain& domain,
                             const Attempt& attempt) const {
  // The same whenever it is sent again. What waits in a bundle goes out later than it was begun.
  const auto waited = attempt.said > 0         ? attempt.said
                      : attempt.bundle.empty() ? attempt.started
                      : attempt.tries.empty()  ? attempt.bundle_due
                                               : attempt.tries.front().at;
  const auto token = link_token(search, attempt.id, time_at(waited) + options_.link_ttl);
  return {.domain = domain,
          .search = search,
          .contact = contact,
          .kind = attempt.kind,
          .link = fmt::format("{}{}{}", options_.base, kLinkPath, token),
          .code = attempt.code,
          .replies = takes_replies(attempt.kind)};
}

bool Sender::takes_replies(ChannelKind kind) const {
  return std::ranges::any_of(
      providers_, [&](const auto& provider) { return provider->serves(kind) && provider->takes_replies(); });
}

Message Sender::message_of(const Occasion& occasion, const Attempt& attempt) const {
  return {.id = fmt::format("{}/{}", attempt.search, attempt.id.text()),
          .domain = attempt.domain,
          .search = attempt.search,
          .attempt = attempt.id.text(),
          .kind = attempt.kind,
          .destination = attempt.destination,
          .contact_name = attempt.contact_name,
          .language = attempt.language,
          .subject = attempt.subject.empty() ? subject_of(attempt.text) : attempt.subject,
          .text = attempt.text,
          .link = occasion.link,
          .metadata = occasion.search.metadata};
}

void Sender::write_metrics(metrics::Exposition& out) const {
  const auto count = [&](const char* outcome, const metrics::Counter& counter) {
    out.counter("tabella_manhunt_attempts_total", "Attempts to reach somebody that were finished",
                static_cast<double>(counter), {{"outcome", outcome}});
  };
  count("sent", sent_);
  count("failed", failed_);
  count("unknown", unknown_);
}

}  // namespace tabella::manhunt
