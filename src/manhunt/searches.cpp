#include "manhunt/searches.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/ids.h"
#include "base/text.h"
#include "store/batches.h"
#include "store/conditional.h"
#include "store/together.h"

namespace tabella::manhunt {

using store::Async;
using store::Row;

namespace {

constexpr const char* kKeySort = "key";
constexpr const char* kEndToken = "endToken";  // of the change that has ended a search
constexpr int kOpenTries = 10;
constexpr std::chrono::hours kKeyKept{24 * 90};
constexpr size_t kAnswersAtOnce = 32;
constexpr size_t kMostBytesOfPage = 1u << 20;  // of metadata, about
constexpr size_t kSearchesAtOnce = 25;

store::Item dedup_key(std::string_view list, std::string_view key) {
  return Row().set(kPartition, fmt::format("key#{}#{}", list, key)).set(kSort, kKeySort);
}

// By which a search is found that was opened under its key.
store::Item key_row_of(std::string_view list, const Search& search) {
  return Row()
      .set(kPartition, fmt::format("key#{}#{}", list, search.key))
      .set(kSort, kKeySort)
      .set("entityType", "searchKey")
      .set("search", search.id)
      .set(kExpires, (search.created + std::chrono::milliseconds(kKeyKept).count()) / 1000);
}

// Whether a search still stands for what it was opened for: it is under way, or somebody has taken it on.
bool is_open(const Search& search) {
  return search.status == Status::active || search.status == Status::successful;
}

bool have_one_target(const Search& one, const Search& other) {
  return one.domain == other.domain && one.contact == other.contact && one.policy == other.policy;
}

// Where a list goes on behind a row.
store::Item place_of(const store::Item& row, const char* partition) {
  Row place;
  for (const auto* name : {kPartition, kSort, partition, kFirstSort})
    place.set(name, store::text_of(row, name));
  return place;
}

std::unexpected<store::Error> wrong(std::string message) { return store::refuse(std::move(message)); }

std::unexpected<store::Error> no_such_contact(std::string_view contact) {
  return wrong(fmt::format("contact: there is no contact {} in this domain", printable(contact)));
}

}  // namespace

std::string bundle_partition(std::string_view bundle) { return fmt::format("bundle#{}", bundle); }
std::string bundle_timer(std::string_view bundle) { return fmt::format("manhunt|bundle|{}", bundle); }

AttemptId next_of(const FullSearch& full) {
  if (full.steps.empty()) return {};
  const auto& last = full.steps.back();
  const bool more_steps = static_cast<size_t>(last.number) < full.search.steps.size();
  return more_steps ? AttemptId{.round = last.round, .step = last.number + 1}
                    : AttemptId{.round = last.round + 1, .step = 1};
}

Async<Search> Searches::draft(OpenRequest request) {
  if (!request.contact.empty()) {
    TABELLA_CO_ASSIGN(const auto contact, co_await parts_.contacts.find(request.domain, request.contact));
    if (!contact) co_return no_such_contact(request.contact);
  }
  co_return co_await draft_unchecked(std::move(request));
}

Async<Search> Searches::draft_unchecked(OpenRequest request) {
  if (request.contact.empty() == request.policy.empty())
    co_return wrong("expected either contact or policy: who is to be found");
  const auto now = parts_.clock.now();
  Search search{.id = make_id('s'),
                .domain = request.domain,
                .contact = request.contact,
                .policy = request.policy,
                .created = epoch_milliseconds(now),
                .key = request.key,
                .low_urgency = request.low_urgency,
                .language = request.language,
                .metadata = request.metadata,
                .repeat = request.repeat,
                .nonce = make_nonce()};
  TABELLA_CO_ASSIGN(const auto domain, co_await parts_.domains.find(request.domain));
  if (request.contact.empty()) {
    auto policy = domain->policies.find(request.policy);
    // It may be new.
    DomainView fresh;
    if (policy == domain->policies.end()) {
      TABELLA_CO_ASSIGN(fresh, co_await parts_.domains.read(request.domain));
      policy = fresh->policies.find(request.policy);
      if (policy == fresh->policies.end())
        co_return wrong(
            fmt::format("policy: there is no policy {} in this domain", printable(request.policy)));
    }
    search.steps = policy->second.steps;
    search.repeat = policy->second.repeat;
  } else {
    search.steps.push_back({.targets = {{.contact = request.contact}}, .wait = request.wait});
  }
  if (const auto window = domain->under_maintenance(request.policy, now); !window.empty()) {
    search.status = Status::canceled;
    search.ended = search.created;
    search.resolution = {.how = "maintenance", .detail = window};
  }
  co_return search;
}

// The search, its first step and that step's timers are one write: it is under way once it is acknowledged.
Async<Opened> Searches::open(OpenRequest request) {
  TABELLA_CO_ASSIGN(auto search, co_await draft_unchecked(std::move(request)));
  const auto list = target_list(search);
  search.begun = search.status == Status::active;
  for (int i = 0; i < kOpenTries; ++i) {
    Plan plan;
    if (!search.key.empty()) {
      TABELLA_CO_ASSIGN(const auto before, co_await search_of_key(list, search.key));
      if (before) {
        TABELLA_CO_ASSIGN(auto found, co_await find(*before));
        // `list` is made of what the caller names: it may be another's.
        if (found && !have_one_target(*found, search)) co_return no_such_contact(search.contact);
        if (found && is_open(*found)) {
          if ((found->low_urgency || found->raising) && !search.low_urgency) {
            TABELLA_CO_TRY(co_await raise(found->id));
            found->low_urgency = false;
          }
          co_return Opened{.search = std::move(*found), .fresh = false};
        }
      }
      plan.writes.push_back(store::Put(table_, key_row_of(list, search))
                                .when(before ? store::equals("search", *before) : store::absent(kPartition)));
    }
    TABELLA_CO_TRY(co_await plan_opening(plan, search));
    const auto opened =
        co_await parts_.store.transact_write_items({.writes = std::move(plan.writes), .token = make_uuid()});
    if (!opened && !store::lost_a_race(opened.error())) co_return store::error_of(opened);
    bool made = opened.has_value();
    if (!made) {
      // It may be its own row that stood in the way, where an answer was lost.
      TABELLA_CO_ASSIGN(const auto found, co_await find(search.id));
      made = found.has_value();
    }
    if (made) {
      plan.were_made(parts_.schedule);
      co_return Opened{.search = std::move(search)};
    }
  }
  co_return store::fail(store::ErrorCode::unavailable, "others open searches with the same key: try again");
}

// Its rows and timers, but for the key's.
Async<void> Searches::plan_opening(Plan& plan, const Search& search) {
  const auto opened_at = time_at(search.created);
  TABELLA_CO_ASSIGN(const auto domain, co_await parts_.domains.find(search.domain));
  TABELLA_CO_ASSIGN(const auto first,
                    co_await make_step(parts_.contacts, search, {}, *domain, opened_at, opened_at));
  if (!search.contact.empty() && first.tracks.empty()) co_return no_such_contact(search.contact);
  plan.writes.push_back(store::Put(table_, to_item(search)).when(store::absent(kPartition)));
  plan.writes.push_back(store::Put(table_, to_item(domain_listing(search))));
  if (search.begun) plan_step(plan, parts_.schedule, table_, search, first);
  co_return store::Result<void>();
}

Async<void> Searches::adopt(const Search& search) {
  TABELLA_CO_TRY(store::was_made(co_await parts_.store.put_item(
      store::Put(table_, to_item(domain_listing(search))).when(store::absent(kPartition)))));
  TABELLA_CO_TRY(store::was_made(co_await parts_.store.update_item(adopt_update(table_, search))));
  co_return store::Result<void>();
}

Async<void> Searches::raise(const std::string& search) {
  store::Update urgent(table_, search_key(search));
  urgent.remove("lowUrgency").set("raising", true).when(is_active());
  TABELLA_CO_TRY(store::was_made(co_await parts_.store.update_item(std::move(urgent))));
  co_return co_await finish_raising(search);
}

// With attempts that were put off comes what was put off behind them: bundles, the next round, the end.
Async<void> Searches::finish_raising(std::string search) {
  TABELLA_CO_ASSIGN(const auto full, co_await find_full(search));
  if (!full || !full->search.raising) co_return store::Result<void>();
  const auto now = parts_.clock.now();
  for (const auto& step : full->steps) {
    AttemptId id{.round = step.round, .step = step.number, .track = 0};
    for (const auto& track : step.tracks) {
      ++id.track;
      auto at = time_at(step.started);
      for (id.number = 1; static_cast<size_t>(id.number) <= track.methods.size(); ++id.number) {
        const auto made = std::ranges::find(full->attempts, id, &Attempt::id);
        if (made != full->attempts.end()) {
          at = time_at(made->started);
          if (made->waits_for_next_try())
            TABELLA_CO_TRY(co_await parts_.schedule.reschedule_waiting(attempt_timer(*made, now).id, now));
          if (!made->bundle.empty() && !made->is_over())
            TABELLA_CO_TRY(co_await parts_.schedule.reschedule_waiting(
                bundle_timer(made->bundle), std::max(time_at(made->bundle_due), now)));
          continue;
        }
        at += track.methods[static_cast<size_t>(id.number) - 1].delay;
        TABELLA_CO_TRY(co_await parts_.schedule.reschedule_waiting(attempt_timer(search, id, track, at).id,
                                                                   std::max(at, now)));
        break;
      }
    }
  }
  // Whoever handles these finds out when it is time.
  const auto next = next_of(*full);
  if (next.step == 1) TABELLA_CO_TRY(co_await bring_forward(parts_.schedule, search, next, now));
  store::Update raised(table_, search_key(search));
  raised.remove("raising").when(store::exists(kPartition));
  TABELLA_CO_TRY(store::was_made(co_await parts_.store.update_item(std::move(raised))));
  co_return store::Result<void>();
}

Async<std::optional<std::string>> Searches::search_of_key(const std::string& list, const std::string& key) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await parts_.store.get_item({.table = table_, .key = dedup_key(list, key), .consistent = true}));
  co_return found.item ? std::optional(store::text_of(*found.item, "search")) : std::nullopt;
}

Async<std::optional<Search>> Searches::find(std::string id) {
  store::QueryRequest request =
      store::Query(table_).partition(kPartition, id).where(store::equals(kSort, kSearchSort)).consistent();
  TABELLA_CO_ASSIGN(const auto page, co_await parts_.store.query(std::move(request)));
  co_return page.items.empty() ? std::nullopt : to_search(page.items.front());
}

Async<std::optional<FullSearch>> Searches::find_full(std::string id) {
  TABELLA_CO_ASSIGN(
      const auto rows,
      co_await store::query_all(parts_.store, store::Query(table_).partition(kPartition, id).consistent()));
  FullSearch full;
  bool found = false;
  for (const auto& row : rows) {
    if (auto search = to_search(row)) {
      full.search = std::move(*search);
      found = true;
    } else if (auto step = to_step(row)) {
      full.steps.push_back(std::move(*step));
    } else if (auto attempt = to_attempt(row)) {
      full.attempts.push_back(std::move(*attempt));
    } else if (auto listing = to_listing(row)) {
      full.listings.push_back(std::move(*listing));
    }
  }
  if (!found) co_return std::nullopt;
  co_return full;
}

Async<std::map<std::string, Search>> Searches::find_all(std::vector<std::string> ids) {
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  std::vector<store::Item> keys;
  for (const auto& id : ids) keys.push_back(search_key(id));
  std::map<std::string, Search> found;
  if (keys.empty()) co_return found;
  TABELLA_CO_ASSIGN(const auto rows, co_await store::get_all(parts_.store, table_, std::move(keys)));
  for (const auto& row : rows)
    if (auto search = to_search(row)) found.emplace(search->id, std::move(*search));
  co_return found;
}

Async<SearchPage> Searches::list(SearchList request) {
  store::Query query(table_);
  query.index(request.status ? kSecondIndex : kFirstIndex).limit(request.limit).descending();
  if (request.status)
    query.partition(kSecondPartition, fmt::format("{}#{}", name_of(*request.status), request.list));
  else
    query.partition(kFirstPartition, request.list);
  const auto text = [](TimePoint time) { return sortable_time(epoch_milliseconds(time)); };
  if (request.before && request.after && *request.before <= *request.after)
    co_return wrong("before and after: expected after to be earlier than before");
  // Between includes its ends, and a page is to have neither.
  const std::chrono::milliseconds next{1};
  if (request.before && request.after && *request.after + next > *request.before - next)
    co_return SearchPage{};
  if (request.before && request.after)
    query.where(store::between(kFirstSort, text(*request.after + next), text(*request.before - next)));
  else if (request.before)
    query.where(store::less(kFirstSort, text(*request.before)));
  else if (request.after)
    query.where(store::greater(kFirstSort, text(*request.after)));
  store::QueryRequest asked = std::move(query);
  TABELLA_CO_ASSIGN(asked.options.start_key, parse_cursor(request.from));
  TABELLA_CO_ASSIGN(const auto page, co_await parts_.store.query(std::move(asked)));

  SearchPage found{.next = cursor_text(page.last_key)};
  size_t bytes = 0;
  for (std::span<const store::Item> rows(page.items); !rows.empty();) {
    const auto some = rows.first(std::min(rows.size(), kSearchesAtOnce));
    rows = rows.subspan(some.size());
    const auto before = found.searches.size();
    TABELLA_CO_TRY(co_await add_searches(some, found.searches));
    for (const auto& search : std::span(found.searches).subspan(before)) bytes += search.metadata.size();
    if (bytes < kMostBytesOfPage || rows.empty()) continue;
    found.next = cursor_text(place_of(some.back(), request.status ? kSecondPartition : kFirstPartition));
    break;
  }
  co_return found;
}

// Those that stand in rows of a list.
Async<void> Searches::add_searches(std::span<const store::Item> rows, std::vector<Search>& searches) {
  std::vector<std::string> listed;
  for (const auto& row : rows)
    if (const auto listing = to_listing(row)) listed.push_back(listing->search);
  TABELLA_CO_ASSIGN(auto by_id, co_await find_all(std::move(listed)));
  for (const auto& row : rows) {
    if (auto search = to_search(row)) searches.push_back(std::move(*search));
    if (const auto listing = to_listing(row))
      if (auto search = by_id.extract(listing->search)) searches.push_back(std::move(search.mapped()));
  }
  co_return store::Result<void>();
}

Async<std::optional<Search>> Searches::find_by_key(std::string list, std::string key) {
  TABELLA_CO_ASSIGN(const auto row, co_await search_of_key(list, key));
  if (!row) co_return std::nullopt;
  co_return co_await find(*row);
}

Async<std::optional<Ended>> Searches::end(std::string id, Status status, Resolution resolution) {
  TABELLA_CO_ASSIGN(const auto search, co_await find(std::move(id)));
  if (!search) co_return std::nullopt;
  co_return co_await end(*search, status, resolution);
}

Async<std::optional<Ended>> Searches::end(const Search& search, Status status, const Resolution& resolution) {
  const auto token = make_uuid();
  const auto ended = co_await parts_.store.update_item(
      end_update(table_, search, status, resolution, parts_.clock.now()).set(kEndToken, token));
  if (ended) {
    auto now = to_search(*ended->attributes);
    if (!now) co_return store::fail(store::ErrorCode::internal, "the search's row cannot be read");
    co_return Ended{.won = true, .search = std::move(*now)};
  }
  if (!store::failed_its_condition(ended.error())) co_return store::error_of(ended);
  TABELLA_CO_ASSIGN(const auto row,
                    co_await store::item_behind(parts_.store, ended.error(), table_, search_key(search.id)));
  auto now = row ? to_search(*row) : std::nullopt;
  if (!now) co_return std::nullopt;
  // It may be this very change, of which the answer was lost; or who answered answers again.
  const bool is_this = store::text_of(*row, kEndToken) == token;
  const bool is_again = !resolution.attempt.empty() && now->status == status &&
                        now->resolution.how == resolution.how &&
                        now->resolution.attempt == resolution.attempt;
  co_return Ended{.won = is_this || is_again, .search = std::move(*now)};
}

Async<std::optional<Attempt>> Searches::find_attempt(std::string search, AttemptId id) {
  TABELLA_CO_ASSIGN(
      const auto found,
      co_await parts_.store.get_item({.table = table_, .key = attempt_key(search, id), .consistent = true}));
  co_return found.item ? to_attempt(*found.item) : std::nullopt;
}

Async<std::optional<Ended>> Searches::answer(std::string id, Answer answer) {
  std::optional<Attempt> attempt;
  if (answer.attempt) {
    TABELLA_CO_ASSIGN(attempt, co_await find_attempt(id, *answer.attempt));
    if (!attempt) co_return wrong("attempt: there is no such attempt");
  }
  TABELLA_CO_ASSIGN(auto ended, co_await answer_one(id, answer, attempt ? attempt->contact : std::string()));
  if (ended && attempt && !attempt->bundle.empty()) {
    TABELLA_CO_ASSIGN(const bool won, co_await answer_bundle(*attempt, answer));
    ended->won |= won;
  }
  if (ended && ended->won && attempt) TABELLA_CO_TRY(co_await mark_answered(std::move(*attempt), answer));
  co_return ended;
}

Async<std::optional<Ended>> Searches::answer_one(std::string id, Answer answer, std::string contact) {
  TABELLA_CO_ASSIGN(const auto search, co_await find(std::move(id)));
  if (!search) co_return std::nullopt;
  if (!answer.accept) co_return co_await decline(*search, contact.empty() ? search->contact : contact);
  co_return co_await end(
      *search, Status::successful,
      {.how = answer.how, .by = answer.by, .attempt = answer.attempt ? answer.attempt->text() : ""});
}

Async<std::vector<Attempt>> Searches::sent_in(const std::string& bundle) {
  TABELLA_CO_ASSIGN(
      const auto rows,
      co_await store::query_all(
          parts_.store, store::Query(table_).partition(kPartition, bundle_partition(bundle)).consistent()));
  std::vector<store::Item> keys;
  for (const auto& row : rows)
    if (const auto id = AttemptId::parse(store::text_of(row, "attempt")))
      keys.push_back(attempt_key(store::text_of(row, "search"), *id));
  std::vector<Attempt> sent;
  if (keys.empty()) co_return sent;
  TABELLA_CO_ASSIGN(const auto found, co_await store::get_all(parts_.store, table_, std::move(keys)));
  for (const auto& row : found)
    if (auto attempt = to_attempt(row); attempt && attempt->state != AttemptState::bundled)
      sent.push_back(std::move(*attempt));
  co_return sent;
}

// Who answers one of a bundle answers all that came with it, in one message. Whether it was the answer of
// any.
Async<bool> Searches::answer_bundle(const Attempt& answered, const Answer& answer) {
  TABELLA_CO_ASSIGN(auto asked, co_await sent_in(answered.bundle));
  std::erase_if(asked, [&](const Attempt& one) { return !one.came_with(answered); });
  bool won = false;
  std::optional<store::Error> failure;
  const auto answer_row = [&](std::string id, Answer one) -> boost::asio::awaitable<void> {
    const auto ended = co_await answer_one(std::move(id), std::move(one), answered.contact);
    if (!ended) failure = ended.error();
    won |= ended && *ended && (*ended)->won;
  };
  for (size_t i = 0; i < asked.size();) {
    std::vector<boost::asio::awaitable<void>> some;
    for (; i < asked.size() && some.size() < kAnswersAtOnce; ++i) {
      auto one = answer;
      one.attempt = asked[i].id;
      some.push_back(answer_row(asked[i].search, std::move(one)));
    }
    co_await store::do_together(std::move(some));
    if (failure) co_return std::unexpected(std::move(*failure));
  }
  co_return won;
}

Async<std::optional<Ended>> Searches::decline(const Search& search, const std::string& contact) {
  if (contact.empty()) co_return wrong("attempt: expected which attempt is declined, as several are asked");
  const auto declined = co_await parts_.store.update_item(decline_update(table_, search.id, contact));
  if (!declined && !store::failed_its_condition(declined.error())) co_return store::error_of(declined);
  if (!declined) {
    TABELLA_CO_ASSIGN(auto now, co_await find(search.id));
    if (!now) co_return std::nullopt;
    co_return Ended{.search = std::move(*now)};
  }
  auto now = to_search(*declined->attributes);
  if (!now) co_return store::fail(store::ErrorCode::internal, "the search's row cannot be read");
  co_return Ended{.won = true, .search = std::move(*now)};
}

Async<void> Searches::mark_answered(Attempt attempt, const Answer& answer) {
  attempt.answer = answer.accept ? "accept" : "decline";
  attempt.answered_how = answer.how;
  attempt.answered = epoch_milliseconds(parts_.clock.now());
  TABELLA_CO_TRY(store::was_made(co_await parts_.store.update_item(answer_update(table_, attempt))));
  co_return store::Result<void>();
}

bool all_declined(const FullSearch& full) {
  return !full.search.declined.empty() && std::ranges::all_of(full.steps, [&](const Step& step) {
    return std::ranges::all_of(step.tracks, [&](const Track& track) {
      const bool is_asked = !track.methods.empty();
      return !is_asked || full.search.has_declined(track.contact);
    });
  });
}

Async<void> Searches::note_progress(std::string search, AttemptId attempt, std::string progress) {
  TABELLA_CO_TRY(
      store::was_made(co_await parts_.store.update_item(progress_update(table_, search, attempt, progress))));
  co_return store::Result<void>();
}

Async<void> Searches::note_undelivered(std::string search, AttemptId attempt, std::string reference,
                                       std::string why) {
  return parts_.schedule.put(
      {.id = fmt::format("manhunt|{}|{}|undelivered|{}", search, attempt.text(), reference),
       .kind = kUndeliveredTimer,
       .at = parts_.clock.now(),
       .payload = fmt::format("{}|{}|{}|{}", search, attempt.text(), why, reference)});
}

Async<void> Searches::resolve(std::string list, std::string key, std::string by) {
  TABELLA_CO_ASSIGN(const auto id, co_await search_of_key(list, key));
  if (!id) co_return store::Result<void>();
  TABELLA_CO_TRY(co_await end(*id, Status::canceled, {.how = "resolved", .by = std::move(by)}));
  co_return co_await free_key(list, key, *id);
}

Async<std::optional<Search>> Searches::resolve(Search search, std::string by) {
  TABELLA_CO_ASSIGN(auto ended,
                    co_await end(search, Status::canceled, {.how = "resolved", .by = std::move(by)}));
  if (!ended) co_return std::nullopt;
  if (!search.key.empty()) TABELLA_CO_TRY(co_await free_key(target_list(search), search.key, search.id));
  co_return std::move(ended->search);
}

// If it is still that search's.
Async<void> Searches::free_key(const std::string& list, const std::string& key, const std::string& search) {
  TABELLA_CO_TRY(store::was_made(co_await parts_.store.delete_item(
      store::Delete(table_, dedup_key(list, key)).when(store::equals("search", search)))));
  co_return store::Result<void>();
}

}  // namespace tabella::manhunt
