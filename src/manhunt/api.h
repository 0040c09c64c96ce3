// /manhunt over HTTP: domains and what they are set to (api_domains.cpp, api_schedules.cpp,
// api_heartbeats.cpp), contacts (api_contacts.cpp), searches (api_searches.cpp), how people answer
// (api_answers.cpp), and the doors of other systems (api_doors.cpp). Who may do what is in api.cpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "house/routes.h"
#include "manhunt/bundles.h"
#include "manhunt/contacts.h"
#include "manhunt/domains.h"
#include "manhunt/heartbeats.h"
#include "manhunt/phones.h"
#include "manhunt/providers.h"
#include "manhunt/replies.h"
#include "manhunt/searches.h"
#include "manhunt/timeline.h"
#include "manhunt/verification.h"
#include "net/outbound.h"
#include "store/long_work.h"

namespace tabella::manhunt {

class Api {
 public:
  struct Parts {
    const Clock& clock;
    Domains& domains;
    Contacts& contacts;
    Searches& searches;
    Bundles& bundles;
    Replies& replies;
    Phones& phones;
    Sender& sender;
    Heartbeats& heartbeats;
    Verification& verification;
    const Providers& providers;
    net::Outbound& outbound;
    store::LongWork long_work;
    std::string base;  // what our addresses begin with
  };
  explicit Api(Parts parts) : parts_(std::move(parts)) {}

  using Routes = house::Routes<Api>;
  static void add_routes(Routes routes);

 private:
  using Task = boost::asio::awaitable<void>;
  using Call = net::Call;
  template <class T>
  using Maybe = boost::asio::awaitable<std::optional<T>>;

  // The domain of the path, for who may come in: an API token with the scope, a person, or the domain's
  // secret. Nothing: that was answered.
  Maybe<std::string> domain_for(Call& call, const char* scope);
  Maybe<std::string> reader(Call& call) { return domain_for(call, "manhunt:read"); }
  Maybe<std::string> writer(Call& call) { return domain_for(call, "manhunt:write"); }
  static std::optional<std::string> name_in(Call& call, const char* what);
  Maybe<DomainView> view_of(Call& call, const std::string& domain);

  static void add_domain_routes(Routes& routes);
  Task show_domain(Call& call);
  Task set_domain(Call& call);
  Task show_secret(Call& call);
  Task list_templates(Call& call);
  Task set_template(Call& call);
  Task remove_template(Call& call);
  Task list_policies(Call& call);
  Task show_policy(Call& call);
  Task set_policy(Call& call);
  Task change_routing_key(Call& call);
  Task remove_policy(Call& call);
  Task list_maintenance(Call& call);
  Task show_maintenance(Call& call);
  Task set_maintenance(Call& call);
  Task remove_maintenance(Call& call);
  Task remove_part(Call& call, Part part, const char* what, std::string name);

  static void add_heartbeat_routes(Routes& routes);
  Task list_heartbeats(Call& call);
  Task show_heartbeat(Call& call);
  Task set_heartbeat(Call& call);
  Task remove_heartbeat(Call& call);
  Task beat(Call& call);

  static void add_schedule_routes(Routes& routes);
  Task list_schedules(Call& call);
  Task show_schedule(Call& call);
  Task set_schedule(Call& call);
  Task remove_schedule(Call& call);
  Task add_override(Call& call);
  Task remove_override(Call& call);
  Task show_on_call(Call& call);
  Task show_shifts(Call& call);
  Task preview_schedule(Call& call);
  Task make_calendar(Call& call);
  Task calendar(Call& call);
  Maybe<OnCallSchedule> schedule_of(Call& call, const std::string& domain);

  static void add_contact_routes(Routes& routes);
  Task list_contacts(Call& call);
  Task create_contact(Call& call);
  Task show_contact(Call& call);
  Task set_contact(Call& call);
  Task remove_contact(Call& call);
  Task add_method(Call& call);
  Task set_method(Call& call);
  Task remove_method(Call& call);
  Task begin_verification(Call& call);
  Task confirm_verification(Call& call);
  Task test_method(Call& call);
  Task list_contact_searches(Call& call);
  Maybe<FullContact> contact_of(Call& call, const std::string& domain);
  struct Named {
    DomainView domain;
    Contact contact;
    Method method;
  };
  Maybe<Named> method_of(Call& call);
  std::optional<Method> read_method(Call& call, JsonValue json, Method method) const;

  static void add_search_routes(Routes& routes);
  Task open_search(Call& call);
  Task list_searches(Call& call);
  Task list_policy_searches(Call& call);
  Task show_search(Call& call);
  Task cancel_search(Call& call);
  Task resolve_search(Call& call);
  Task respond(Call& call);
  Task dry_run(Call& call);
  Task timeline(Call& call);
  Task answer_list(Call& call, std::string list, const std::string& domain);
  void write_timeline(Call& call, const FullSearch& full, const Domain& domain, const Directory& directory,
                      const UsedLimits& used, bool with_texts) const;
  Task answer_timeline(Call& call, const FullSearch& full, bool with_texts);
  Maybe<FullSearch> search_of(Call& call, const std::string& domain);
  Maybe<OpenRequest> read_open_request(Call& call, const std::string& domain);
  Task answer_ended(Call& call, store::Result<std::optional<Ended>> ended);

  static void add_answer_routes(Routes& routes);
  Task show_link(Call& call);
  Task follow_link(Call& call);
  Task list_phones(Call& call);
  Task use_phone(Call& call);
  Task call_callback(Call& call);
  Task status_callback(Call& call);
  store::Async<void> note_status(std::string search, AttemptId id, std::string status, std::string sid);
  Task text_callback(Call& call);
  struct Asked;
  Maybe<Asked> asked(Call& call);
  boost::asio::awaitable<store::Result<std::optional<std::string>>> press(const Asked& asked,
                                                                          std::string_view digits);
  struct Linked;
  Maybe<Linked> linked(Call& call);
  using Form = std::map<std::string, std::string, std::less<>>;
  std::optional<Form> signed_form(Call& call) const;

  static void add_door_routes(Routes& routes);
  Task enqueue(Call& call);
  Task enqueue_change(Call& call);
  Task alertmanager(Call& call);

  const Parts parts_;
};

// Shared by its files.
inline const std::vector<net::Parameter> kPageParameters = {{"limit", "how many, 50 unless told"},
                                                            {"next", "what the page before gave"}};
net::Route domain_route(std::string method, std::string path, std::string summary, std::string body = {});
net::Route open_route(std::string method, std::string path, std::string summary, std::string answer);
// Of who was let in by domain_for(): whether what one can answer and open searches with is for them.
bool may_write(const net::Call& call);
// Whether a part of that name fits into a domain, as the request has it; answers 400 where it does not.
inline constexpr size_t kMostOfOneKind = 200;
inline constexpr size_t kMostOfDomain = 1024 * 1024;  // bytes, beside the overrides of its schedules
inline constexpr size_t kMostOverridesOfDomain = 5'000;
bool has_room(net::Call& call, const Domain& domain, const auto& parts, Part part, const std::string& name) {
  const auto before = domain.bytes_of.find(part_sort(part, name));
  const size_t replaced = before == domain.bytes_of.end() ? 0 : before->second;
  const auto added = call.request.body.size();
  if (!parts.contains(name) && parts.size() >= kMostOfOneKind)
    call.refuse(400, fmt::format("a domain has at most {} of these", kMostOfOneKind));
  else if (added > replaced && domain.bytes + added - replaced > kMostOfDomain)
    call.refuse(400, fmt::format("all that is set of a domain comes to {} bytes at most; remove some of it",
                                 kMostOfDomain));
  return !call.answered();
}
void not_there(net::Call& call, std::string_view what);
std::string metadata_json(JsonValue json);

}  // namespace tabella::manhunt
