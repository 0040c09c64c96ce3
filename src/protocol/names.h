// How DynamoDB writes the choices that requests and answers hold: "ALL_OLD", "PAY_PER_REQUEST", …
//
// Both sides of the protocol use these tables: wire/ reads requests with them and remote/ writes requests
// with them. They stand in AWS's order, which is that of its error messages.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "store/requests.h"
#include "store/streams.h"
#include "store/table.h"
#include "store/transactions.h"

namespace tabella::protocol {

template <class E>
using Name = std::pair<std::string_view, E>;
template <class E>
using EnumNames = std::span<const Name<E>>;

template <class E, size_t N>
constexpr std::string_view name_of(const std::array<Name<E>, N>& names, E value) {
  for (const auto& [name, v] : names)
    if (v == value) return name;
  return "";
}

template <class E, size_t N>
constexpr std::optional<E> value_of(const std::array<Name<E>, N>& names, std::string_view wanted) {
  for (const auto& [name, value] : names)
    if (name == wanted) return value;
  return std::nullopt;
}

inline constexpr std::array<Name<store::CapacityDetail>, 3> kCapacityDetails = {
    {{"INDEXES", store::CapacityDetail::indexes},
     {"TOTAL", store::CapacityDetail::total},
     {"NONE", store::CapacityDetail::none}}};

inline constexpr std::array<Name<bool>, 2> kCollectionMetrics = {{{"SIZE", true}, {"NONE", false}}};
inline constexpr std::array<Name<bool>, 2> kReturnOnFailure = {{{"ALL_OLD", true}, {"NONE", false}}};

inline constexpr std::array<Name<store::ReturnValues>, 5> kReturnValues = {
    {{"ALL_NEW", store::ReturnValues::all_new},
     {"UPDATED_OLD", store::ReturnValues::updated_old},
     {"ALL_OLD", store::ReturnValues::all_old},
     {"NONE", store::ReturnValues::none},
     {"UPDATED_NEW", store::ReturnValues::updated_new}}};

inline constexpr std::array<Name<store::Select>, 4> kSelects = {
    {{"SPECIFIC_ATTRIBUTES", store::Select::specific_attributes},
     {"COUNT", store::Select::count},
     {"ALL_ATTRIBUTES", store::Select::all_attributes},
     {"ALL_PROJECTED_ATTRIBUTES", store::Select::all_projected_attributes}}};

inline constexpr std::array<Name<store::Combine>, 2> kCombines = {
    {{"OR", store::Combine::any}, {"AND", store::Combine::all}}};

inline constexpr std::array<Name<item::Type>, 3> kKeyTypes = {
    {{"B", item::Type::B}, {"N", item::Type::N}, {"S", item::Type::S}}};

inline constexpr std::array<Name<store::KeyRole>, 2> kKeyRoles = {
    {{"HASH", store::KeyRole::hash}, {"RANGE", store::KeyRole::range}}};

inline constexpr std::array<Name<store::ProjectionType>, 3> kProjections = {
    {{"ALL", store::ProjectionType::all},
     {"INCLUDE", store::ProjectionType::include},
     {"KEYS_ONLY", store::ProjectionType::keys_only}}};

inline constexpr std::array<Name<store::BillingMode>, 2> kBillingModes = {
    {{"PROVISIONED", store::BillingMode::provisioned},
     {"PAY_PER_REQUEST", store::BillingMode::pay_per_request}}};

inline constexpr std::array<Name<store::TableClass>, 2> kTableClasses = {
    {{"STANDARD", store::TableClass::standard},
     {"STANDARD_INFREQUENT_ACCESS", store::TableClass::standard_infrequent_access}}};

inline constexpr std::array<Name<store::Status>, 4> kStatuses = {{{"CREATING", store::Status::creating},
                                                                  {"ACTIVE", store::Status::active},
                                                                  {"UPDATING", store::Status::updating},
                                                                  {"DELETING", store::Status::deleting}}};

inline constexpr std::array<Name<store::StreamView>, 4> kStreamViews = {
    {{"OLD_IMAGE", store::StreamView::old_image},
     {"KEYS_ONLY", store::StreamView::keys_only},
     {"NEW_AND_OLD_IMAGES", store::StreamView::new_and_old_images},
     {"NEW_IMAGE", store::StreamView::new_image}}};

inline constexpr std::array<Name<store::IteratorType>, 4> kIteratorTypes = {
    {{"AFTER_SEQUENCE_NUMBER", store::IteratorType::after_sequence_number},
     {"LATEST", store::IteratorType::latest},
     {"AT_SEQUENCE_NUMBER", store::IteratorType::at_sequence_number},
     {"TRIM_HORIZON", store::IteratorType::trim_horizon}}};

inline constexpr std::array<Name<store::StreamEvent>, 3> kStreamEvents = {
    {{"INSERT", store::StreamEvent::insert},
     {"MODIFY", store::StreamEvent::modify},
     {"REMOVE", store::StreamEvent::remove}}};

inline constexpr std::array<Name<store::TimeToLiveStatus>, 3> kTimeToLiveStatuses = {
    {{"ENABLING", store::TimeToLiveStatus::enabling},
     {"ENABLED", store::TimeToLiveStatus::enabled},
     {"DISABLED", store::TimeToLiveStatus::disabled}}};

inline constexpr std::array<Name<store::TransactWrite::Kind>, 4> kTransactWrites = {
    {{"ConditionCheck", store::TransactWrite::Kind::check},
     {"Put", store::TransactWrite::Kind::put},
     {"Delete", store::TransactWrite::Kind::remove},
     {"Update", store::TransactWrite::Kind::update}}};

}  // namespace tabella::protocol
