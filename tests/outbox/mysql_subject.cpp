// The contract on MySQL: a real MariaDB server, and a database of its own for each test.
#include "outbox/mariadb.h"
#include "outbox/mysql_backend.h"
#include "outbox/subject.h"
#include "support/empty_store.h"
#include "support/run.h"

namespace tabella::outbox {
namespace {

class MysqlSubject final : public BackendSubject {
 public:
  MysqlSubject() {
    for (auto* backend : {&backend_, &other_})
      if (const auto prepared = test::run(backend->prepare()); !prepared)
        throw std::runtime_error(prepared.error().message);
  }

  Backend& backend() override { return backend_; }
  Backend& other() override { return other_; }

  void foreign_accept(const std::string& id, const std::string& payload_file_path) override {
    test::query(foreign_, "INSERT INTO emails (id, status, payload_file_path) VALUES (?, 'ACCEPTED', ?)",
                {id, payload_file_path});
  }

  bool foreign_move(const std::string& id, State from, State to, const std::string& reason) override {
    const std::string status(name_of(to));
    foreign_.begin().value();
    const auto updated = test::query(
        foreign_,
        "UPDATE emails SET status = ?, reason = ?, version = version + 1 WHERE id = ? AND status = ?",
        {status, reason, id, std::string(name_of(from))});
    if (updated.affected > 0)
      test::query(foreign_, "INSERT INTO email_statuses (email_id, status, reason) VALUES (?, ?, ?)",
                  {id, status, reason});
    foreign_.commit().value();
    return updated.affected > 0;
  }

 private:
  const std::string database_ = test::Mariadb::shared().make_database();
  test::EmptyStore store_;
  MysqlBackend backend_{store_, test::Mariadb::shared().url(database_)};
  MysqlBackend other_{store_, test::Mariadb::shared().socket_url(database_)};
  MysqlConnection foreign_ = test::Mariadb::shared().connect(database_);
};

}  // namespace

std::unique_ptr<BackendSubject> make_mysql_subject() { return std::make_unique<MysqlSubject>(); }

}  // namespace tabella::outbox
