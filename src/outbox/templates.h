// Templates that are kept by name, for SES and for /outbox. Rows of our table under the id "#template".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "store/store.h"

namespace tabella::outbox {

// As SES has it: each part is a template of its own (handlebars/template.h).
struct EmailTemplate {
  std::string name;
  std::string subject = {};
  std::optional<std::string> text = {};
  std::optional<std::string> html = {};
  TimePoint created = {};
};

struct EmailTemplatePage {
  std::vector<EmailTemplate> templates;  // name and created
  std::string next;                      // empty: these were the last
};

// Thread-safe.
class Templates {
 public:
  Templates(store::Store& store, const Clock& clock, std::string table)
      : store_(store), clock_(clock), table_(std::move(table)) {}

  store::Async<bool> create(EmailTemplate email_template);  // false: there is one of that name
  store::Async<bool> update(EmailTemplate email_template);  // false: there is none
  store::Async<bool> remove(std::string name);
  store::Async<std::optional<EmailTemplate>> find(std::string name);
  store::Async<EmailTemplatePage> list(size_t limit, std::string from);

 private:
  store::Store& store_;
  const Clock& clock_;
  const std::string table_;
};

}  // namespace tabella::outbox
