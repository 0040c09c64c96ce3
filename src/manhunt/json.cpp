#include "manhunt/json.h"

#include "base/time_text.h"
#include "manhunt/links.h"

namespace tabella::manhunt {

void write_search(JsonObjectWriter& out, const Search& search) {
  out.string("id", search.id);
  out.string("domain", search.domain);
  out.string("status", name_of(search.status));
  if (!search.contact.empty()) out.string("contact", search.contact);
  if (!search.policy.empty()) out.string("policy", search.policy);
  if (!search.key.empty()) out.string("key", search.key);
  out.string("urgency", search.low_urgency ? "low" : "high");
  out.string("created", time_text(time_at(search.created)));
  out.key("metadata").append(search.metadata);
  if (search.status == Status::active) return;
  out.string("ended", time_text(time_at(search.ended)));
  JsonObjectWriter resolution(out.key("resolution"));
  resolution.string("how", search.resolution.how);
  if (!search.resolution.by.empty()) resolution.string("by", search.resolution.by);
  if (!search.resolution.attempt.empty()) resolution.string("attempt", search.resolution.attempt);
  if (!search.resolution.detail.empty()) resolution.string("detail", search.resolution.detail);
  resolution.string("at", time_text(time_at(search.ended)));
}

void write_attempt(std::string& out, const Attempt& attempt, bool with_links) {
  JsonObjectWriter object(out);
  object.string("id", attempt.id.text());
  object.string("contact", attempt.contact);
  object.string("contact_name", attempt.contact_name);
  object.string("method", attempt.method);
  object.string("type", name_of(attempt.kind));
  object.string("destination", attempt.destination);
  object.string("state", name_of(attempt.state));
  object.string("due", time_text(time_at(attempt.due)));
  object.string("started", time_text(time_at(attempt.started)));
  if (attempt.finished > 0) object.string("finished", time_text(time_at(attempt.finished)));
  if (!attempt.detail.empty()) object.string("detail", attempt.detail);
  if (!attempt.bundle.empty()) object.string("bundle", attempt.bundle);
  if (!attempt.text.empty()) object.string("text", with_links ? attempt.text : without_links(attempt.text));
  if (!attempt.progress.empty()) object.string("progress", attempt.progress);
  {
    JsonArrayWriter tries(object.key("tries"));
    for (const auto& each : attempt.tries) {
      JsonObjectWriter one(tries.element());
      one.string("at", time_text(time_at(each.at)));
      one.string("provider", each.provider);
      one.string("outcome", name_of(each.outcome));
      if (!each.detail.empty()) one.string("detail", each.detail);
      if (!each.reference.empty()) one.string("reference", each.reference);
    }
  }
  if (attempt.answer.empty()) return;
  JsonObjectWriter response(object.key("response"));
  response.string("answer", attempt.answer);
  response.string("how", attempt.answered_how);
  response.string("at", time_text(time_at(attempt.answered)));
}

}  // namespace tabella::manhunt
