#include "outbox/mysql_connection.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>

#include <errmsg.h>
#include <mysql.h>
#include <mysqld_error.h>

#include "base/ids.h"

namespace tabella::outbox {
namespace {

// These end the session, from either side. The 115x are the server's, about its half of the connection.
constexpr std::array kLost = {unsigned{CR_CONNECTION_ERROR},         unsigned{CR_CONN_HOST_ERROR},
                              unsigned{CR_SERVER_GONE_ERROR},        unsigned{CR_SERVER_LOST},
                              unsigned{CR_SERVER_LOST_EXTENDED},     unsigned{CR_SERVER_HANDSHAKE_ERR},
                              unsigned{CR_COMMANDS_OUT_OF_SYNC},     unsigned{CR_MALFORMED_PACKET},
                              unsigned{ER_SERVER_SHUTDOWN},          unsigned{ER_CONNECTION_KILLED},
                              unsigned{ER_NET_PACKETS_OUT_OF_ORDER}, unsigned{ER_NET_READ_ERROR},
                              unsigned{ER_NET_READ_INTERRUPTED},     unsigned{ER_NET_ERROR_ON_WRITE},
                              unsigned{ER_NET_WRITE_INTERRUPTED}};
// These leave it as it is, but may be otherwise the next time. 1203: too many connections of one user; 1047:
// a node of Galera that is not in its cluster for the moment; 1615: a table was altered under a statement.
constexpr std::array kPassing = {unsigned{ER_LOCK_WAIT_TIMEOUT},         unsigned{ER_LOCK_DEADLOCK},
                                 unsigned{ER_CON_COUNT_ERROR},           unsigned{ER_CHECKREAD},
                                 unsigned{ER_TOO_MANY_USER_CONNECTIONS}, unsigned{ER_NEED_REPREPARE},
                                 unsigned{ER_UNKNOWN_COM_ERROR}};

MysqlError make_mysql_error(unsigned number, const char* sqlstate, const char* message) {
  const bool lost = std::ranges::find(kLost, number) != kLost.end();
  return {.number = number,
          .sqlstate = sqlstate,
          .message = message,
          .lost = lost,
          .transient = lost || std::ranges::find(kPassing, number) != kPassing.end()};
}
MysqlError error_of_handle(MYSQL* handle) {
  return make_mysql_error(mysql_errno(handle), mysql_sqlstate(handle), mysql_error(handle));
}
MysqlError error_of_statement(MYSQL_STMT* statement) {
  return make_mysql_error(mysql_stmt_errno(statement), mysql_stmt_sqlstate(statement),
                          mysql_stmt_error(statement));
}

// Must happen before the first handle is made, and is not safe against another thread doing it.
void start_client_library() {
  static std::once_flag once;
  std::call_once(once, [] { mysql_server_init(0, nullptr, nullptr); });
}

void set_mysql_options(MYSQL* handle, const MysqlUrl& url) {
  const unsigned connect_seconds = 5;
  const unsigned answer_seconds = 30;
  mysql_options(handle, MYSQL_OPT_CONNECT_TIMEOUT, &connect_seconds);
  mysql_options(handle, MYSQL_OPT_READ_TIMEOUT, &answer_seconds);
  mysql_options(handle, MYSQL_OPT_WRITE_TIMEOUT, &answer_seconds);
  mysql_options(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  const unsigned no_files = 0;  // else a server could ask for any file of ours
  mysql_options(handle, MYSQL_OPT_LOCAL_INFILE, &no_files);
  if (url.tls == MysqlUrl::Tls::off) return;
  const my_bool yes = 1;
  const my_bool verify = url.tls == MysqlUrl::Tls::verify ? 1 : 0;
  mysql_options(handle, MYSQL_OPT_SSL_ENFORCE, &yes);
  mysql_options(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
  if (!url.ca_file.empty()) mysql_options(handle, MYSQL_OPT_SSL_CA, url.ca_file.c_str());
}

// The parameters of a statement as the library wants them: pointers to the values.
std::vector<MYSQL_BIND> bind_values(const std::vector<MysqlValue>& values) {
  std::vector<MYSQL_BIND> binds(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    auto& bind = binds[i];
    std::memset(&bind, 0, sizeof bind);
    bind.buffer_type = MYSQL_TYPE_NULL;
    if (const auto* number = std::get_if<int64_t>(&values[i])) {
      bind.buffer_type = MYSQL_TYPE_LONGLONG;
      bind.buffer = const_cast<int64_t*>(number);
    } else if (const auto* text = std::get_if<std::string>(&values[i])) {
      bind.buffer_type = MYSQL_TYPE_STRING;
      bind.buffer = const_cast<char*>(text->data());
      bind.buffer_length = text->size();
    }
  }
  return binds;
}

// Reads the rows of a result, everything as text. Most values fit the room that each column has; a longer one
// is fetched again in its full length.
class RowReader {
 public:
  explicit RowReader(MYSQL_STMT* statement)
      : statement_(statement), columns_(mysql_stmt_field_count(statement)), binds_(columns_.size()) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      std::memset(&binds_[i], 0, sizeof binds_[i]);
      binds_[i].buffer_type = MYSQL_TYPE_STRING;
      binds_[i].buffer = columns_[i].room.data();
      binds_[i].buffer_length = columns_[i].room.size();
      binds_[i].length = &columns_[i].length;
      binds_[i].is_null = &columns_[i].is_null;
    }
  }

  MysqlResult<std::vector<MysqlRow>> read() {
    if (mysql_stmt_bind_result(statement_, binds_.data()) != 0 || mysql_stmt_store_result(statement_) != 0)
      return std::unexpected(error_of_statement(statement_));
    std::vector<MysqlRow> rows;
    rows.reserve(mysql_stmt_num_rows(statement_));
    while (true) {
      const int fetched = mysql_stmt_fetch(statement_);
      if (fetched == MYSQL_NO_DATA) return rows;
      if (fetched != 0 && fetched != MYSQL_DATA_TRUNCATED)
        return std::unexpected(error_of_statement(statement_));
      auto& row = rows.emplace_back();
      for (unsigned i = 0; i < columns_.size(); ++i) row.push_back(column(i));
    }
  }

 private:
  struct Column {
    std::array<char, 256> room;
    unsigned long length = 0;
    my_bool is_null = 0;
  };

  std::optional<std::string> column(unsigned i) {
    const auto& column = columns_[i];
    if (column.is_null != 0) return std::nullopt;
    if (column.length <= column.room.size()) return std::string(column.room.data(), column.length);
    std::string text(column.length, '\0');
    MYSQL_BIND whole = binds_[i];
    whole.buffer = text.data();
    whole.buffer_length = text.size();
    mysql_stmt_fetch_column(statement_, &whole, i, 0);
    return text;
  }

  MYSQL_STMT* const statement_;
  std::vector<Column> columns_;
  std::vector<MYSQL_BIND> binds_;
};

}  // namespace

struct MysqlConnection::Impl {
  MYSQL* handle = nullptr;
  std::map<std::string, MYSQL_STMT*, std::less<>> statements;
  std::string name = make_uuid();
  int64_t number = 0;
  bool broken = false;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    for (const auto& [text, statement] : statements) mysql_stmt_close(statement);
    mysql_close(handle);
  }

  std::unexpected<MysqlError> failed(MysqlError error) {
    broken = broken || error.lost;
    return std::unexpected(std::move(error));
  }

  MysqlResult<> query(std::string_view text) {
    if (mysql_real_query(handle, text.data(), text.size()) != 0) return failed(error_of_handle(handle));
    return {};
  }

  MysqlResult<MYSQL_STMT*> prepared(std::string_view text) {
    if (const auto found = statements.find(text); found != statements.end()) return found->second;
    MYSQL_STMT* statement = mysql_stmt_init(handle);
    if (statement == nullptr) return failed(error_of_handle(handle));
    if (mysql_stmt_prepare(statement, text.data(), text.size()) != 0) {
      auto error = error_of_statement(statement);
      mysql_stmt_close(statement);
      return failed(std::move(error));
    }
    statements.emplace(text, statement);
    return statement;
  }
};

MysqlConnection::MysqlConnection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MysqlConnection::~MysqlConnection() = default;
MysqlConnection::MysqlConnection(MysqlConnection&&) noexcept = default;
MysqlConnection& MysqlConnection::operator=(MysqlConnection&&) noexcept = default;

MysqlResult<MysqlConnection> MysqlConnection::open(const MysqlUrl& url) {
  start_client_library();
  auto impl = std::make_unique<Impl>();
  impl->handle = mysql_init(nullptr);
  if (impl->handle == nullptr) throw std::bad_alloc();
  set_mysql_options(impl->handle, url);
  // Without a host the library takes the socket, and with "localhost" some socket of its own choice.
  const char* host = url.socket.empty() ? url.host.c_str() : nullptr;
  if (url.socket.empty() && url.host == "localhost") {
    const unsigned tcp = MYSQL_PROTOCOL_TCP;
    mysql_options(impl->handle, MYSQL_OPT_PROTOCOL, &tcp);
  }
  if (mysql_real_connect(impl->handle, host, url.user.c_str(), url.password.c_str(), url.database.c_str(),
                         url.port, url.socket.empty() ? nullptr : url.socket.c_str(),
                         CLIENT_FOUND_ROWS) == nullptr)
    return impl->failed(error_of_handle(impl->handle));
  static_assert(kLongestIdle == std::chrono::seconds(300));
  TABELLA_TRY(impl->query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"));
  TABELLA_TRY(
      impl->query("SET time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', "
                  "innodb_lock_wait_timeout = 10, wait_timeout = 300"));
  return MysqlConnection(std::move(impl));
}

MysqlResult<MysqlRows> MysqlConnection::execute(std::string_view text,
                                                const std::vector<MysqlValue>& values) {
  TABELLA_ASSIGN(auto* const statement, impl_->prepared(text));
  auto binds = bind_values(values);
  if (mysql_stmt_param_count(statement) != binds.size())
    throw std::logic_error("as many values as '?' in: " + std::string(text));
  if ((!binds.empty() && mysql_stmt_bind_param(statement, binds.data()) != 0) ||
      mysql_stmt_execute(statement) != 0)
    return impl_->failed(error_of_statement(statement));
  MysqlRows result{.affected = mysql_stmt_affected_rows(statement),
                   .inserted_id = static_cast<int64_t>(mysql_stmt_insert_id(statement))};
  if (mysql_stmt_field_count(statement) == 0) return result;
  auto rows = RowReader(statement).read();
  mysql_stmt_free_result(statement);
  if (!rows) return impl_->failed(std::move(rows).error());
  result.rows = std::move(*rows);
  return result;
}

MysqlResult<> MysqlConnection::begin() { return impl_->query("START TRANSACTION"); }
MysqlResult<> MysqlConnection::commit() { return impl_->query("COMMIT"); }
void MysqlConnection::rollback() {
  if (!impl_->broken && !impl_->query("ROLLBACK")) impl_->broken = true;
}

bool MysqlConnection::is_broken() const { return impl_->broken; }
const std::string& MysqlConnection::name() const { return impl_->name; }
int64_t MysqlConnection::next_number() { return ++impl_->number; }

}  // namespace tabella::outbox
