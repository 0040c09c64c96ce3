// What the contract of outbox::Backend runs on.
#pragma once

#include <memory>
#include <string>

#include "outbox/backend.h"

namespace tabella::outbox {

// A backend with empty tables for one test, with whatever it needs to live.
class BackendSubject {
 public:
  virtual ~BackendSubject() = default;
  virtual Backend& backend() = 0;
  // A second one on the same tables, as another process of ours has.
  virtual Backend& other() = 0;

  // A program that is not ours, with the statements of the outbox's description: it adds an email that is
  // ACCEPTED, or moves one; false if that one was not in `from`.
  virtual void foreign_accept(const std::string& id, const std::string& payload_file_path) = 0;
  virtual bool foreign_move(const std::string& id, State from, State to, const std::string& reason) = 0;
};

// BACKEND_ON names one of them: mysql, store.
std::unique_ptr<BackendSubject> make_mysql_subject();
std::unique_ptr<BackendSubject> make_store_subject();

}  // namespace tabella::outbox
