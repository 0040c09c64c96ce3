// What Amazon SES v2 is asked for, read from the JSON of its requests (the shapes of botocore's model,
// sesv2/2019-09-27). Nothing is looked up here: a request that comes through has the shape that it should,
// its addresses can be read and its limits are kept.
//
// Plain functions of untrusted input, on any thread. What is wrong is told by a sentence that names the
// member.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "mime/compose.h"
#include "outbox/suppressions.h"
#include "outbox/templates.h"

namespace tabella::outbox {

inline constexpr size_t kSesMostRecipients = 50;
inline constexpr size_t kSesMostEntries = 50;
inline constexpr size_t kSesMostMessage = 40u << 20;  // bytes of the message as it is sent

using SesLabels = std::map<std::string, std::string>;

// A template, by its name or as it was sent along, and what to fill it with.
struct SesTemplate {
  std::string name = {};  // empty: `content` is it
  EmailTemplate content = {};
  std::string data = "{}";  // a JSON object
};

struct SesDestination {
  std::vector<mime::Address> to = {}, cc = {}, bcc = {};

  size_t size() const { return to.size() + cc.size() + bcc.size(); }
};

// One email to be sent. Exactly one of the draft's text and HTML, `raw` and `with_template` says what is in
// it.
struct SesEmail {
  mime::Draft draft = {};  // without recipients, message id and date
  SesDestination destination = {};
  std::string bounces_to = {};  // FeedbackForwardingEmailAddress; empty: the address in From
  std::optional<std::string> raw = {};
  std::optional<SesTemplate> with_template = {};
  SesLabels labels = {};
  std::string configuration_set = {};  // empty: none
};

struct SesBulkEntry {
  SesDestination destination;
  SesLabels labels;                                          // these go before the bulk's of the same name
  std::string data;                                          // these members go before the bulk's
  std::vector<std::pair<std::string, std::string>> headers;  // these go before the bulk's of the same name
};

struct SesBulk {
  SesEmail email;                              // what all have in common; with_template is there
  std::vector<Checked<SesBulkEntry>> entries;  // one that is wrong does not keep the others from being sent
};

struct SesConfigurationSet {
  std::string name;
};

Checked<SesEmail> parse_send_email(JsonValue body);
Checked<SesBulk> parse_send_bulk_email(JsonValue body);
Checked<EmailTemplate> parse_create_email_template(JsonValue body);
Checked<EmailTemplate> parse_update_email_template(JsonValue body);  // its name is in the path
Checked<std::string> parse_test_render(JsonValue body);              // the data
Checked<Suppressed> parse_put_suppressed_destination(JsonValue body);
Checked<SesConfigurationSet> parse_create_configuration_set(JsonValue body);

// One address, with or without a name: "Ann <ann@example.com>".
Checked<mime::Address> parse_ses_address(std::string_view member, std::string_view text);
// Letters, digits, '_' and '-', at most 64: the names of templates and configuration sets.
Checked<> check_ses_name(std::string_view member, std::string_view name);

}  // namespace tabella::outbox
