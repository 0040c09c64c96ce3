#include "outbox/templates.h"

#include <array>

#include <fmt/format.h>

#include "outbox/named_rows.h"

namespace tabella::outbox {

using item::Item;
using store::Async;

namespace {

// The row of a template has all but its two bodies, so that a list of them reads little. These stand one
// behind the other, in pieces that a row can hold, as "name#0" and "name#1" under an id of their own. All of
// them are written and read in one transaction.
constexpr const char* kTemplate = "#template";
constexpr const char* kTemplateBody = "#template-body";
constexpr size_t kBodyPiece = 350 * 1024;
constexpr size_t kMostTemplate = 500 * 1024;  // as SES
constexpr size_t kMostSubject = kBodyPiece;
constexpr int kBodyPieces = 2;
static_assert(kBodyPieces * kBodyPiece >= kMostTemplate);

Item body_key(const std::string& name, int piece) {
  return named_key(kTemplateBody, fmt::format("{}#{}", name, piece));
}

Item to_row(const EmailTemplate& email_template, TimePoint created) {
  store::Row row;
  row.set("id", kTemplate).set("part", email_template.name);
  row.set("created", epoch_milliseconds(created)).set("subject", email_template.subject);
  if (email_template.text) row.set("text_size", email_template.text->size());
  if (email_template.html) row.set("html_size", email_template.html->size());
  return row;
}

// The writes of its bodies: a piece that it does not need is deleted, as it may have been there before.
void add_bodies(std::vector<store::TransactWrite>& writes, const std::string& table,
                const EmailTemplate& email_template) {
  const std::string bytes = email_template.text.value_or("") + email_template.html.value_or("");
  std::string_view left = bytes;
  for (int piece = 0; piece < kBodyPieces; ++piece) {
    if (left.empty()) {
      writes.push_back(store::Delete(table, body_key(email_template.name, piece)));
      continue;
    }
    store::Row row;
    row.set("id", kTemplateBody).set("part", fmt::format("{}#{}", email_template.name, piece));
    row.set("bytes", store::Binary{left.substr(0, kBodyPiece)});
    writes.push_back(store::Put(table, row));
    left.remove_prefix(std::min(left.size(), kBodyPiece));
  }
}

store::Result<> check_size(const EmailTemplate& email_template) {
  if (const auto size = email_template.subject.size(); size > kMostSubject)
    return store::refuse(
        fmt::format("the template's subject has {} bytes; it may have {}", size, kMostSubject));
  const auto size = email_template.subject.size() + email_template.text.value_or("").size() +
                    email_template.html.value_or("").size();
  if (size <= kMostTemplate) return {};
  return store::refuse(fmt::format("the template has {} bytes; it may have {}", size, kMostTemplate));
}

// Whether the writes were made; that the condition of the first of them failed is no error.
Async<bool> made_if_condition(store::Store& store, std::vector<store::TransactWrite> writes) {
  const auto written = co_await store.transact_write_items({.writes = std::move(writes)});
  if (written) co_return true;
  const auto& reasons = written.error().reasons;
  if (!reasons.empty() && store::failed_its_condition(reasons.front())) co_return false;
  co_return std::unexpected(written.error());
}

}  // namespace

Async<bool> Templates::create(EmailTemplate email_template) {
  TABELLA_CO_TRY(check_size(email_template));
  std::vector<store::TransactWrite> writes;
  writes.push_back(store::Put(table_, to_row(email_template, clock_.now())).when(store::absent("id")));
  add_bodies(writes, table_, email_template);
  co_return co_await made_if_condition(store_, std::move(writes));
}

Async<bool> Templates::update(EmailTemplate email_template) {
  TABELLA_CO_TRY(check_size(email_template));
  store::Update update(table_, named_key(kTemplate, email_template.name));
  update.set("subject", email_template.subject).when(store::exists("id"));
  const auto set_size = [&](const char* name, const std::optional<std::string>& body) {
    if (body)
      update.set(name, body->size());
    else
      update.remove(name);
  };
  set_size("text_size", email_template.text);
  set_size("html_size", email_template.html);
  std::vector<store::TransactWrite> writes;
  writes.push_back(std::move(update));
  add_bodies(writes, table_, email_template);
  co_return co_await made_if_condition(store_, std::move(writes));
}

Async<bool> Templates::remove(std::string name) {
  std::vector<store::TransactWrite> writes;
  writes.push_back(store::Delete(table_, named_key(kTemplate, name)).when(store::exists("id")));
  for (int piece = 0; piece < kBodyPieces; ++piece)
    writes.push_back(store::Delete(table_, body_key(name, piece)));
  co_return co_await made_if_condition(store_, std::move(writes));
}

Async<std::optional<EmailTemplate>> Templates::find(std::string name) {
  store::TransactGetItemsRequest request;
  request.gets.push_back({.table = table_, .key = named_key(kTemplate, name)});
  for (int piece = 0; piece < kBodyPieces; ++piece)
    request.gets.push_back({.table = table_, .key = body_key(name, piece)});
  TABELLA_CO_ASSIGN(const auto found, co_await store_.transact_get_items(std::move(request)));
  if (!found.responses.at(0)) co_return std::nullopt;
  const auto& row = *found.responses[0];
  std::string bytes;
  for (int piece = 1; piece <= kBodyPieces; ++piece)
    if (const auto& body = found.responses.at(static_cast<size_t>(piece)))
      bytes += store::binary_of(*body, "bytes");
  EmailTemplate email_template{.name = std::move(name),
                               .subject = store::text_of(row, "subject"),
                               .created = time_at(store::number_of(row, "created"))};
  const auto text_size = std::min(static_cast<size_t>(store::number_of(row, "text_size")), bytes.size());
  if (row.view().find("text_size")) email_template.text = bytes.substr(0, text_size);
  if (row.view().find("html_size")) email_template.html = bytes.substr(text_size);
  co_return email_template;
}

Async<EmailTemplatePage> Templates::list(size_t limit, std::string from) {
  TABELLA_CO_ASSIGN(auto found, co_await list_named(store_, table_, kTemplate, limit, std::move(from)));
  EmailTemplatePage page{.templates = {}, .next = std::move(found.next)};
  for (const auto& row : found.rows)
    page.templates.push_back(
        {.name = store::text_of(row, "part"), .created = time_at(store::number_of(row, "created"))});
  co_return page;
}

}  // namespace tabella::outbox
