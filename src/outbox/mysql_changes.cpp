#include "outbox/mysql_changes.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/text.h"
#include "net/target.h"

namespace tabella::outbox {
namespace {

// Longer than a transaction that has written its history can wait for a lock (InnoDB's default is 50 s).
constexpr int64_t kGapSeconds = 60;
constexpr size_t kMostGaps = 64;
constexpr int64_t kRereadSeconds = 5;
constexpr int64_t kSweepSeconds = 120;
constexpr int64_t kSecondsBetweenSweeps = 30;

std::optional<int64_t> parse_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

int64_t number_in(const std::optional<std::string>& column) {
  return parse_number(column.value_or("")).value_or(0);
}

MysqlResult<int64_t> server_seconds(MysqlConnection& connection) {
  TABELLA_ASSIGN(const auto found, connection.execute("SELECT UNIX_TIMESTAMP()"));
  return number_in(found.rows.at(0).at(0));
}

// first-last@noticed
std::optional<MysqlPosition::Gap> parse_gap(std::string_view text) {
  const auto dash = text.find('-');
  const auto at = text.find('@');
  if (dash == std::string_view::npos || at == std::string_view::npos || at < dash) return std::nullopt;
  const auto first = parse_number(text.substr(0, dash));
  const auto last = parse_number(text.substr(dash + 1, at - dash - 1));
  const auto noticed = parse_number(text.substr(at + 1));
  if (!first || !last || !noticed || *first > *last) return std::nullopt;
  return MysqlPosition::Gap{*first, *last, *noticed};
}

// Two gaps that are one hold what is between them as well: it is seen again, which is allowed.
void join_nearest(std::vector<MysqlPosition::Gap>& gaps) {
  size_t nearest = 0;
  for (size_t i = 1; i + 1 < gaps.size(); ++i)
    if (gaps[i + 1].first - gaps[i].last < gaps[nearest + 1].first - gaps[nearest].last) nearest = i;
  gaps[nearest].last = gaps[nearest + 1].last;
  gaps[nearest].noticed = std::min(gaps[nearest].noticed, gaps[nearest + 1].noticed);
  gaps.erase(gaps.begin() + static_cast<std::ptrdiff_t>(nearest) + 1);
}

// Reads on from a position, which goes along.
class ChangesReader {
 public:
  ChangesReader(MysqlConnection& connection, MysqlPosition position, int64_t now, size_t most,
                const IsOurs& is_ours)
      : connection_(connection),
        position_(std::move(position)),
        now_(now),
        most_(static_cast<int64_t>(most)),
        is_ours_(is_ours) {}

  MysqlResult<Changes> read() {
    TABELLA_TRY(read_gaps());
    TABELLA_TRY(read_history());
    const bool sweep = now_ - position_.swept >= kSecondsBetweenSweeps;
    for (size_t i = 0; i < kTakenUp.size(); ++i)
      TABELLA_TRY(
          read_emails(kTakenUp[i], position_.places[i], now_ - (sweep ? kSweepSeconds : kRereadSeconds)));
    if (sweep) position_.swept = now_;
    changes_.position = position_.text();
    return std::move(changes_);
  }

 private:
  MysqlResult<> read_gaps() {
    for (const auto gap : std::vector(position_.gaps)) {
      TABELLA_ASSIGN(
          const auto found,
          connection_.execute(
              "SELECT email_id, status, reason, UNIX_TIMESTAMP(created_at), id FROM email_statuses "
              "WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?",
              {gap.first, gap.last, most_}));
      for (const auto& row : found.rows) {
        position_.fill(number_in(row.at(4)));
        add(row, state_named(row.at(1).value_or("")), is_ours_(number_in(row.at(4))));
      }
      if (now_ - gap.noticed > kGapSeconds)
        std::erase_if(position_.gaps,
                      [&](const auto& g) { return g.first >= gap.first && g.last <= gap.last; });
    }
    return {};
  }

  MysqlResult<> read_history() {
    TABELLA_ASSIGN(const auto found,
                   connection_.execute(
                       "SELECT email_id, status, reason, UNIX_TIMESTAMP(created_at), id FROM email_statuses "
                       "WHERE id > ? ORDER BY id LIMIT ?",
                       {position_.last, most_}));
    for (const auto& row : found.rows) {
      position_.pass(number_in(row.at(4)), now_);
      add(row, state_named(row.at(1).value_or("")), is_ours_(number_in(row.at(4))));
    }
    return {};
  }

  // Emails of a state behind a place. Where these were the last, the place becomes `again`.
  MysqlResult<> read_emails(State status, MysqlPlace& place, int64_t again) {
    const std::string name(name_of(status));
    TABELLA_ASSIGN(
        const auto found,
        connection_.execute("SELECT e.id, e.status, e.reason, UNIX_TIMESTAMP(e.updated_at) FROM emails e "
                            "WHERE e.status = ? AND e.updated_at >= FROM_UNIXTIME(?) "
                            "AND (e.updated_at > FROM_UNIXTIME(?) OR e.id > ?) "
                            "AND NOT EXISTS (SELECT 1 FROM email_statuses s WHERE s.email_id = e.id "
                            "AND s.status = ? AND s.created_at >= e.updated_at) "
                            "ORDER BY e.updated_at, e.id LIMIT ?",
                            {name, place.at, place.at, place.id, name, most_}));
    for (const auto& row : found.rows) {
      place = {.at = number_in(row.at(3)), .id = row.at(0).value_or("")};
      add(row, status, false);
    }
    if (std::ssize(found.rows) < most_) place = {.at = again};
    return {};
  }

  // A row with id, status, reason and time. Others may have written states that there are not.
  void add(const MysqlRow& row, std::optional<State> status, bool ours) {
    if (!status) return;
    changes_.changes.push_back({.position = position_.text(),
                                .id = row.at(0).value_or(""),
                                .status = *status,
                                .reason = row.at(2).value_or(""),
                                .at = TimePoint(std::chrono::seconds(number_in(row.at(3)))),
                                .ours = ours});
  }

  MysqlConnection& connection_;
  MysqlPosition position_;
  const int64_t now_;
  const int64_t most_;
  const IsOurs& is_ours_;
  Changes changes_;
};

}  // namespace

std::string MysqlPlace::text() const { return fmt::format("{}:{}", at, net::percent_encode(id)); }

std::optional<MysqlPlace> MysqlPlace::parse(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto at = parse_number(text.substr(0, colon));
  auto id = net::percent_decode(text.substr(colon + 1), false);
  if (!at || !id) return std::nullopt;
  return MysqlPlace{.at = *at, .id = std::move(*id)};
}

void MysqlPosition::pass(int64_t id, int64_t now) {
  if (id > last + 1) gaps.push_back({.first = last + 1, .last = id - 1, .noticed = now});
  last = id;
  if (gaps.size() > kMostGaps) join_nearest(gaps);
}

void MysqlPosition::fill(int64_t id) {
  const auto found =
      std::ranges::find_if(gaps, [&](const Gap& gap) { return gap.first <= id && id <= gap.last; });
  if (found == gaps.end()) return;
  const Gap behind{.first = id + 1, .last = found->last, .noticed = found->noticed};
  found->last = id - 1;
  const auto next = found->first > found->last ? gaps.erase(found) : std::next(found);
  if (behind.first <= behind.last) gaps.insert(next, behind);
  if (gaps.size() > kMostGaps) join_nearest(gaps);
}

// "1|last|gap,gap|swept|place|place|place|place"; positions are kept across restarts: do not change.
std::string MysqlPosition::text() const {
  auto out = fmt::format("1|{}|", last);
  for (const auto& gap : gaps)
    fmt::format_to(std::back_inserter(out), "{}{}-{}@{}", out.back() == '|' ? "" : ",", gap.first, gap.last,
                   gap.noticed);
  fmt::format_to(std::back_inserter(out), "|{}", swept);
  for (const auto& place : places) out.append("|").append(place.text());
  return out;
}

std::optional<MysqlPosition> MysqlPosition::parse(std::string_view text) {
  const auto parts = split(text, '|');
  MysqlPosition position;
  if (parts.size() != 4 + position.places.size() || parts[0] != "1") return std::nullopt;
  const auto last = parse_number(parts[1]);
  const auto swept = parse_number(parts[3]);
  if (!last || !swept) return std::nullopt;
  position.last = *last;
  position.swept = *swept;
  if (!parts[2].empty())
    for (const auto part : split(parts[2], ',')) {
      const auto gap = parse_gap(part);
      if (!gap) return std::nullopt;
      position.gaps.push_back(*gap);
    }
  for (size_t i = 0; i < position.places.size(); ++i) {
    auto place = MysqlPlace::parse(parts[4 + i]);
    if (!place) return std::nullopt;
    position.places[i] = std::move(*place);
  }
  return position;
}

MysqlResult<MysqlPosition> present_position(MysqlConnection& connection) {
  TABELLA_ASSIGN(const auto now, server_seconds(connection));
  // What is missing among the latest may be about to be committed.
  TABELLA_ASSIGN(const auto latest,
                 connection.execute("SELECT id FROM email_statuses ORDER BY id DESC LIMIT 1000"));
  MysqlPosition position{.swept = now};
  if (!latest.rows.empty()) position.last = number_in(latest.rows.back().at(0)) - 1;
  for (auto row = latest.rows.rbegin(); row != latest.rows.rend(); ++row)
    position.pass(number_in(row->at(0)), now);
  position.places.fill({.at = now - kRereadSeconds});
  return position;
}

MysqlResult<Changes> changes_behind(MysqlConnection& connection, MysqlPosition position, size_t most,
                                    const IsOurs& is_ours) {
  // Before anything is read: what is committed from now on is found the next time.
  TABELLA_ASSIGN(const auto now, server_seconds(connection));
  return ChangesReader(connection, std::move(position), now, std::max<size_t>(most, 1), is_ours).read();
}

}  // namespace tabella::outbox
