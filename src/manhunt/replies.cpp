#include "manhunt/replies.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "base/utf8.h"
#include "manhunt/rates.h"
#include "manhunt/wording.h"
#include "store/batches.h"

namespace tabella::manhunt {

using store::Async;

namespace {

constexpr std::chrono::hours kReplyKept{24 * 7};
constexpr int64_t kRepliesAtOnce = 200;
constexpr size_t kMostCandidates = 1'000;
constexpr size_t kMostWithCode = 10'000;
constexpr size_t kMostHinted = 3;
// To a number: whoever answers to each may be a program.
constexpr std::chrono::minutes kHintWindow{15};
constexpr int64_t kMostHints = 3;
constexpr size_t kMostSummaryOfHint = 60;

std::string reply_partition(std::string_view number) { return fmt::format("reply#{}", number); }

struct Reply {
  std::optional<bool> accept;
  std::string code;  // empty: none was given
};

Reply read_reply(std::string_view text) {
  const auto shown = printable(text);
  const auto words = std::string_view(trim(shown));
  const auto blank = words.find(' ');
  Reply reply{.accept = meaning_of(words.substr(0, blank))};
  if (blank != std::string_view::npos) reply.code = upper(trim(words.substr(blank + 1)));
  return reply;
}

}  // namespace

std::optional<bool> meaning_of(std::string_view text) {
  constexpr std::array<std::string_view, 10> kAccepts{"1",      "yes", "y",  "ok", "ack",
                                                      "accept", "si",  "sì", "ja", "oui"};
  constexpr std::array<std::string_view, 6> kDeclines{"2", "no", "n", "decline", "nein", "non"};
  const auto word = lower(trim(text));
  if (std::ranges::find(kAccepts, word) != kAccepts.end()) return true;
  if (std::ranges::find(kDeclines, word) != kDeclines.end()) return false;
  return std::nullopt;
}

store::Put reply_row_put(const std::string& table, const Attempt& attempt, TimePoint now) {
  const auto sent = epoch_milliseconds(now);
  store::Item row =
      store::Row()
          .set(kPartition, reply_partition(attempt.destination))
          .set(kSort, fmt::format("{}#{}", sortable_time(sent), attempt.code))
          .set("entityType", "expectedReply")
          .set("search", attempt.search)
          .set("attempt", attempt.id.text())
          .set("domain", attempt.domain)
          .set("language", attempt.language)
          .set("code", attempt.code)
          .set(kExpires,
               std::chrono::ceil<std::chrono::seconds>((now + kReplyKept).time_since_epoch()).count());
  return {table, std::move(row)};
}

// The texts to a number, the newest first.
store::QueryRequest Replies::texts_to(const std::string& number) const {
  return store::Query(searches_.table())
      .partition(kPartition, reply_partition(number))
      .descending()
      .limit(kRepliesAtOnce)
      .consistent();
}

std::optional<Replies::Candidate> Replies::to_candidate(item::ItemView row) {
  const auto attempt = AttemptId::parse(store::text_of(row, "attempt"));
  if (!attempt) return std::nullopt;
  return Candidate{.search = store::text_of(row, "search"),
                   .domain = store::text_of(row, "domain"),
                   .language = store::text_of(row, "language"),
                   .attempt = *attempt,
                   .code = store::text_of(row, "code")};
}

Async<std::optional<Replies::Candidate>> Replies::with_code(const std::string& number,
                                                            const std::string& code) {
  auto request = texts_to(number);
  for (size_t seen = 0; seen < kMostWithCode; seen += kRepliesAtOnce) {
    TABELLA_CO_ASSIGN(auto page, co_await store_.query(request));
    for (const auto& row : page.items)
      if (auto candidate = to_candidate(row); candidate && candidate->code == code) co_return candidate;
    if (!page.last_key) break;
    request.options.start_key = std::move(page.last_key);
  }
  co_return std::nullopt;
}

Async<Replies::Candidates> Replies::candidates_of(const std::string& number) {
  auto request = texts_to(number);
  Candidates candidates;
  while (candidates.all.size() < kMostCandidates) {
    TABELLA_CO_ASSIGN(auto page, co_await store_.query(request));
    std::vector<std::string> ids;
    for (const auto& row : page.items) ids.push_back(store::text_of(row, "search"));
    TABELLA_CO_ASSIGN(const auto searches, co_await searches_.find_all(std::move(ids)));
    for (const auto& row : page.items) {
      auto candidate = to_candidate(row);
      const auto search = candidate ? searches.find(candidate->search) : searches.end();
      if (search == searches.end()) continue;
      candidate->active = search->second.status == Status::active;
      candidate->summary = utf8_front(summary_of(search->second), kMostSummaryOfHint);
      candidates.all.push_back(std::move(*candidate));
    }
    candidates.complete = !page.last_key;
    if (candidates.complete) break;
    request.options.start_key = std::move(page.last_key);
  }
  co_return candidates;
}

Async<std::string> Replies::take(std::string number, std::string text) {
  const auto reply = read_reply(text);
  if (!reply.accept) co_return std::string();
  if (!reply.code.empty()) {
    TABELLA_CO_ASSIGN(const auto named, co_await with_code(number, reply.code));
    if (named) co_return co_await answer(*named, *reply.accept, number);
  }
  TABELLA_CO_ASSIGN(const auto candidates, co_await candidates_of(number));
  const auto& all = candidates.all;
  if (all.empty()) co_return std::string();
  std::vector<const Candidate*> open;
  std::set<std::pair<std::string_view, std::string_view>> known;  // one that went out again is there twice
  for (const auto& each : all)
    if (each.active && known.emplace(each.search, each.code).second) open.push_back(&each);
  const bool is_bare = reply.code.empty();
  const bool of_one_domain =
      std::ranges::all_of(open, [&](const Candidate* each) { return each->domain == all.front().domain; });
  const bool is_clear = all.front().active && of_one_domain && candidates.complete;
  if (is_bare && (is_clear || open.empty())) co_return co_await answer(all.front(), *reply.accept, number);
  if (open.empty()) co_return std::string();
  TABELLA_CO_ASSIGN(
      const auto may_hint,
      co_await count_once(store_, searches_.table(),
                          RateWindow::at("hints#" + number, kHintWindow, clock_.now()), kMostHints));
  if (!may_hint) co_return std::string();
  std::string hint;
  for (const auto* each : std::span(open).first(std::min(open.size(), kMostHinted)))
    hint += fmt::format("{}1 {}, 2 {}: {}", hint.empty() ? "" : "\n", each->code, each->code, each->summary);
  co_return hint;
}

Async<std::string> Replies::answer(const Candidate& candidate, bool accept, const std::string& number) {
  TABELLA_CO_ASSIGN(
      const auto ended,
      co_await searches_.answer(
          candidate.search, {.accept = accept, .attempt = candidate.attempt, .how = "text", .by = number}));
  co_return std::string(outcome_phrase(phrases(candidate.language), accept, ended && ended->won));
}

}  // namespace tabella::manhunt
