// Where Amazon's DynamoDB Local is not as DynamoDB is: tests that are left out on it, visibly, and why.
#include <array>
#include <string_view>
#include <utility>

#include "contract/contract.h"

namespace tabella::contract {
namespace {

constexpr auto kDifferences = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"Statements.SelectColumnsByTheirLastName", "its PartiQL selects no elements of lists"},
    {"Statements.SelectFromIndexes", "it fails at ORDER BY on an index"},
    {"Statements.OrderByTheirKeys", "it orders by the hash of the key"},
    {"Statements.ReadOnlyThePartitionsThatOrNames", "it fails at OR of partitions"},
    {"Statements.EndAPageAtAMegabyteOverAllPartitions", "it has no pages over several partitions"},
    {"Statements.GoOnFromTheirTokens", "it fails at ORDER BY"},
    {"Statements.InsertWhatIsNotThere", "it takes no parameters inside lists"},
    {"Statements.SayWhatIsWrongWithThem", "it words its errors otherwise"},
    {"Statements.RunInBatchesEachForItself", "it words its errors otherwise"},
    {"StoreContract.DoesNotBringAnItemIntoBeingByTakingAway", "it makes the item"},
    {"StoreContract.AddsLargeSetsInReasonableTime",
     "it takes seconds, and longer than a call may on a busy machine"},
    {"StoreContract.RefusesBadKeys", "it words its errors otherwise"},
    {"StoreContract.RefusesStartKeysThatAreNotOne", "it words its errors otherwise"},
    {"StoreContract.QueriesGlobalIndexesOfSeveralAttributes", "its indexes have at most two attributes"},
    {"StoreContract.FillsAnIndexThatIsAddedLater", "writes fail while it adds an index"},
    {"StoreContract.KeepsTags", "it has no tags"},
    {"StoreContract.DescribesWarmThroughput", "it has no warm throughput"},
    {"StoreContract.NamesTheKeyOfAnEncryptedTable", "it has no keys"},
    {"StreamsOfTables.GrowMoreShardsThatNameTheirParents", "its streams have one shard"},
    {"Transactions.SayOfEachActionWhatWasWrong", "it refuses the whole for one faulty expression"},
    {"Transactions.RefuseWhatCannotBeOneTransaction", "it words its errors otherwise"},
    {"Transactions.ChargeTablesTwiceAndIndexesOnce", "it counts other units"},
});

// Those of the old version that npm carries, besides. It has no PartiQL.
constexpr auto kOldDifferences = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"StoreContract.ChecksConditionsAgainstTheItemAsItIs", "it returns no item when a condition fails"},
    {"StoreContract.TakesAnArnForATable", "it takes no ARNs"},
    {"StoreContract.RefusesToUpdateTheKey", "it words its errors otherwise"},
    {"StoreContract.RefusesATableThatExistsOrIsProtected", "it has no deletion protection"},
});

}  // namespace

std::string difference_of_dynamodb_local(std::string_view suite, std::string_view test, bool old) {
  // "On/Statements" and "OrderByTheirKeys/remote_to_…"
  const auto name =
      std::string(suite.substr(suite.find('/') + 1)) + "." + std::string(test.substr(0, test.find('/')));
  for (const auto& [known, reason] : kDifferences)
    if (known == name) return std::string(reason);
  if (!old) return {};
  if (suite.ends_with("Statements")) return "it has no PartiQL";
  for (const auto& [known, reason] : kOldDifferences)
    if (known == name) return std::string(reason);
  return {};
}

}  // namespace tabella::contract
