#include "outbox/mysql_backend.h"

#include <charconv>

#include "base/utf8.h"
#include "outbox/mysql_changes.h"

namespace tabella::outbox {
namespace {

constexpr std::string_view kCreateEmails = R"(
CREATE TABLE IF NOT EXISTS emails (
    id CHAR(36) PRIMARY KEY,
    status ENUM(
        'ACCEPTED','INTAKING','READY','PROCESSING',
        'SENT','FAILED','INVALID',
        'CALLING-SENT-CALLBACK','CALLING-FAILED-CALLBACK',
        'SENT-ACKNOWLEDGED','FAILED-ACKNOWLEDGED'
    ) NOT NULL,
    eml_file_path VARCHAR(500),
    payload_file_path VARCHAR(500),
    reason TEXT,
    version INT NOT NULL DEFAULT 1,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,

    INDEX idx_status (status),
    INDEX idx_status_updated (status, updated_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4)";

constexpr std::string_view kCreateStatuses = R"(
CREATE TABLE IF NOT EXISTS email_statuses (
    id BIGINT AUTO_INCREMENT PRIMARY KEY,
    email_id CHAR(36) NOT NULL,
    status VARCHAR(50) NOT NULL,
    reason TEXT,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,

    INDEX idx_email_id (email_id),
    FOREIGN KEY (email_id) REFERENCES emails(id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4)";

// Texts are never NULL where we write them: programs read them into plain strings. A path that is not given
// stays as it is.
constexpr std::string_view kInsertEmail =
    "INSERT INTO emails (id, status, eml_file_path, payload_file_path, reason) VALUES (?, ?, ?, ?, ?)";
constexpr std::string_view kInsertStep =
    "INSERT INTO email_statuses (email_id, status, reason) VALUES (?, ?, ?)";
constexpr std::string_view kMoveFromStatus =
    "UPDATE emails SET status = ?, reason = ?, version = version + 1, "
    "eml_file_path = COALESCE(NULLIF(?, ''), eml_file_path), "
    "payload_file_path = COALESCE(NULLIF(?, ''), payload_file_path) "
    "WHERE id = ? AND status = ?";
constexpr std::string_view kMoveFromVersion =
    "UPDATE emails SET status = ?, reason = ?, version = version + 1, "
    "eml_file_path = COALESCE(NULLIF(?, ''), eml_file_path), "
    "payload_file_path = COALESCE(NULLIF(?, ''), payload_file_path) "
    "WHERE id = ? AND status = ? AND version = ?";
constexpr std::string_view kFindEmail =
    "SELECT id, status, eml_file_path, payload_file_path, reason, version, UNIX_TIMESTAMP(updated_at) "
    "FROM emails WHERE id = ?";
constexpr std::string_view kListEmails =
    "SELECT id, status, eml_file_path, payload_file_path, reason, version, UNIX_TIMESTAMP(updated_at) "
    "FROM emails WHERE status = ? AND updated_at >= FROM_UNIXTIME(?) "
    "AND (updated_at > FROM_UNIXTIME(?) OR id > ?) "
    "ORDER BY updated_at ASC, id ASC LIMIT ? FOR UPDATE SKIP LOCKED";
constexpr std::string_view kFindCleanable =
    "SELECT id FROM emails WHERE status IN ('SENT-ACKNOWLEDGED', 'FAILED-ACKNOWLEDGED', 'SENT', 'FAILED', "
    "'INVALID') AND updated_at < FROM_UNIXTIME(?) LIMIT ? FOR UPDATE SKIP LOCKED";

constexpr unsigned kDuplicateKey = 1062;

int64_t integer_of(const std::optional<std::string>& column) {
  int64_t number = 0;
  if (column) std::from_chars(column->data(), column->data() + column->size(), number);
  return number;
}
TimePoint second_of(const std::optional<std::string>& column) {
  return TimePoint(std::chrono::seconds(integer_of(column)));
}
std::string text_of(State state) { return std::string(name_of(state)); }

// Columns as in kFindEmail. Nothing for the status '', which a server that is not strict makes of an unknown
// one.
std::optional<Email> email_of(const MysqlRow& row) {
  const auto status = state_named(row.at(1).value_or(""));
  if (!status) return std::nullopt;
  return Email{.id = row.at(0).value_or(""),
               .status = *status,
               .eml_file_path = row.at(2).value_or(""),
               .payload_file_path = row.at(3).value_or(""),
               .updated_at = second_of(row.at(6)),
               .reason = row.at(4).value_or(""),
               .version = static_cast<int>(integer_of(row.at(5)))};
}

// As a TEXT column can have it. What servers of others answer comes in here, and none of it may keep an email
// from moving on.
std::string reason_text(std::string_view reason) {
  constexpr size_t kLongest = 65'535;
  auto text = to_valid_utf8(reason);
  if (text.size() > kLongest) text.resize(valid_utf8_length(std::string_view(text).substr(0, kLongest)));
  return text;
}

struct Written {
  Email email;
  int64_t step = 0;  // its row in the history
};

// In a transaction: the row in the history, and the email as it is then.
MysqlResult<std::optional<Written>> write_step(MysqlConnection& connection, const std::string& id,
                                               State status, const std::string& reason) {
  TABELLA_ASSIGN(const auto step, connection.execute(kInsertStep, {id, text_of(status), reason}));
  TABELLA_ASSIGN(const auto found, connection.execute(kFindEmail, {id}));
  auto email = found.rows.empty() ? std::nullopt : email_of(found.rows.front());
  if (!email) return std::nullopt;
  return Written{.email = std::move(*email), .step = step.inserted_id};
}

MysqlResult<std::optional<Written>> write_new(MysqlConnection& connection, const Email& email) {
  const auto inserted = connection.execute(
      kInsertEmail,
      {email.id, text_of(email.status), email.eml_file_path, email.payload_file_path, email.reason});
  if (!inserted && inserted.error().number == kDuplicateKey) return std::nullopt;
  if (!inserted) return std::unexpected(inserted.error());
  return write_step(connection, email.id, email.status, email.reason);
}

MysqlResult<std::optional<Written>> write_move(MysqlConnection& connection, const Email& email, State to,
                                               const std::string& reason) {
  std::vector<MysqlValue> values = {
      text_of(to), reason, email.eml_file_path, email.payload_file_path, email.id, text_of(email.status)};
  if (email.version > 0) values.emplace_back(int64_t{email.version});
  TABELLA_ASSIGN(const auto updated,
                 connection.execute(email.version > 0 ? kMoveFromVersion : kMoveFromStatus, values));
  if (updated.affected == 0) return std::nullopt;
  return write_step(connection, email.id, to, reason);
}

MysqlResult<std::optional<std::vector<std::string>>> delete_cleanable(MysqlConnection& connection,
                                                                      int64_t before, size_t most) {
  TABELLA_ASSIGN(const auto found, connection.execute(kFindCleanable, {before, static_cast<int64_t>(most)}));
  std::vector<std::string> ids;
  for (const auto& row : found.rows) {
    ids.push_back(row.at(0).value_or(""));
    TABELLA_TRY(connection.execute("DELETE FROM emails WHERE id = ?", {ids.back()}));
  }
  if (ids.empty()) return std::nullopt;
  return ids;
}

}  // namespace

void MysqlBackend::OwnSteps::add(int64_t id) {
  const std::lock_guard lock(mutex_);
  ids_.insert(id);
  order_.push_back(id);
  if (order_.size() <= kMost) return;
  ids_.erase(order_.front());
  order_.pop_front();
}

bool MysqlBackend::OwnSteps::has(int64_t id) const {
  const std::lock_guard lock(mutex_);
  return ids_.contains(id);
}

MysqlBackend::MysqlBackend(store::Store& store, MysqlUrl url, MysqlPool::Options options)
    : store_(store), pool_(std::move(url), options) {}

store::Async<void> MysqlBackend::prepare() {
  TABELLA_CO_TRY(co_await pool_.run([](MysqlConnection& connection) -> MysqlResult<bool> {
    TABELLA_TRY(connection.execute(kCreateEmails));
    TABELLA_TRY(connection.execute(kCreateStatuses));
    TABELLA_TRY(MysqlMark::prepare(connection));
    return true;
  }));
  co_return store::Result<>{};
}

store::Async<bool> MysqlBackend::create(Email email, Beside beside) {
  if (!is_email_id(email.id))
    co_return store::refuse("an email's id has up to 36 letters, digits, '-', '_' and '.'");
  email.reason = reason_text(email.reason);
  TABELLA_CO_TRY(co_await run_beside(std::move(beside.before)));
  TABELLA_CO_ASSIGN(const auto written, co_await pool_.transact([&](MysqlConnection& connection) {
    return write_new(connection, email);
  }));
  if (!written) co_return false;
  TABELLA_CO_TRY(co_await run_beside(std::move(beside.after)));
  own_steps_.add(written->step);
  co_return true;
}

store::Async<std::optional<Email>> MysqlBackend::move(Email email, State to, std::string reason,
                                                      Beside beside) {
  reason = reason_text(reason);
  TABELLA_CO_TRY(co_await run_beside(std::move(beside.before)));
  TABELLA_CO_ASSIGN(auto written, co_await pool_.transact([&](MysqlConnection& connection) {
    return write_move(connection, email, to, reason);
  }));
  if (!written) co_return std::nullopt;
  auto after = co_await run_beside(std::move(beside.after));
  if (!after) {
    after.error().unsure = true;  // it has moved all the same
    co_return store::error_of(after);
  }
  // Only now: a step whose rows were not written is to be noticed like another program's.
  own_steps_.add(written->step);
  co_return std::move(written->email);
}

store::Async<void> MysqlBackend::run_beside(std::vector<store::Statement> statements) {
  if (!statements.empty())
    TABELLA_CO_TRY(co_await store_.execute_transaction({.statements = std::move(statements)}));
  co_return store::Result<>{};
}

store::Async<std::optional<Email>> MysqlBackend::find(std::string id) {
  TABELLA_CO_ASSIGN(const auto found, co_await pool_.run([&](MysqlConnection& connection) {
    return connection.execute(kFindEmail, {id});
  }));
  if (found.rows.empty()) co_return std::nullopt;
  co_return email_of(found.rows.front());
}

store::Async<std::vector<Step>> MysqlBackend::history(std::string id) {
  TABELLA_CO_ASSIGN(const auto found, co_await pool_.run([&](MysqlConnection& connection) {
    return connection.execute(
        "SELECT status, reason, UNIX_TIMESTAMP(created_at) FROM email_statuses WHERE email_id = ? ORDER BY "
        "id",
        {id});
  }));
  std::vector<Step> steps;
  for (const auto& row : found.rows)
    if (const auto status = state_named(row.at(0).value_or("")))
      steps.push_back({.status = *status, .reason = row.at(1).value_or(""), .at = second_of(row.at(2))});
  co_return steps;
}

store::Async<EmailPage> MysqlBackend::list(State status, size_t limit, std::string from) {
  const auto place = from.empty() ? MysqlPlace{} : MysqlPlace::parse(from);
  if (!place) co_return store::refuse("this is not where a page has ended");
  TABELLA_CO_ASSIGN(const auto found, co_await pool_.run([&](MysqlConnection& connection) {
    return connection.execute(
        kListEmails, {text_of(status), place->at, place->at, place->id, static_cast<int64_t>(limit)});
  }));
  EmailPage page;
  for (const auto& row : found.rows)
    if (auto email = email_of(row)) page.emails.push_back(std::move(*email));
  if (found.rows.size() >= limit && !found.rows.empty()) {
    const auto& last = found.rows.back();
    page.next = MysqlPlace{.at = integer_of(last.at(6)), .id = last.at(0).value_or("")}.text();
  }
  co_return page;
}

store::Async<std::map<State, int64_t>> MysqlBackend::counts() {
  TABELLA_CO_ASSIGN(const auto found, co_await pool_.run([](MysqlConnection& connection) {
    return connection.execute("SELECT status, COUNT(*) FROM emails GROUP BY status");
  }));
  std::map<State, int64_t> counts;
  for (const auto& row : found.rows)
    if (const auto status = state_named(row.at(0).value_or(""))) counts[*status] = integer_of(row.at(1));
  co_return counts;
}

store::Async<bool> MysqlBackend::remove(std::string id) {
  TABELLA_CO_ASSIGN(
      const auto removed,
      co_await pool_.transact([&](MysqlConnection& connection) -> MysqlResult<std::optional<bool>> {
        TABELLA_ASSIGN(const auto deleted, connection.execute("DELETE FROM emails WHERE id = ?", {id}));
        return deleted.affected > 0 ? std::optional(true) : std::nullopt;
      }));
  co_return removed.has_value();
}

store::Async<Changes> MysqlBackend::changes(std::string position, size_t most) {
  const auto from = position.empty() ? MysqlPosition{} : MysqlPosition::parse(position);
  if (!from) co_return store::refuse("this is no position among the changes");
  co_return co_await pool_.run([&](MysqlConnection& connection) -> MysqlResult<Changes> {
    if (!position.empty())
      return changes_behind(connection, *from, most, [this](int64_t id) { return own_steps_.has(id); });
    TABELLA_ASSIGN(const auto now, present_position(connection));
    return Changes{.position = now.text()};
  });
}

store::Async<std::vector<std::string>> MysqlBackend::clean(TimePoint before, size_t most) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(before).time_since_epoch().count();
  TABELLA_CO_ASSIGN(auto deleted, co_await pool_.transact([&](MysqlConnection& connection) {
    return delete_cleanable(connection, seconds, most);
  }));
  co_return deleted ? std::move(*deleted) : std::vector<std::string>{};
}

}  // namespace tabella::outbox
