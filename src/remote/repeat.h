// What it means to send a request a second time when nobody knows what became of the first: its answer was
// lost, or said only that something went wrong.
#pragma once

#include "store/store.h"

namespace tabella::remote {

enum class Repeat {
  read,  // nothing is changed by it
  // The second changes nothing that the first did not, unless somebody else wrote in between, which is the
  // bargain of all SDKs; or it carries a token that tells them apart.
  harmless,
  guarded,  // a condition keeps the second from happening once the first has; its failure may then mislead
  never,    // the second would count twice
};

Repeat repeat_of(const store::PutItemRequest& request);
Repeat repeat_of(const store::UpdateItemRequest& request);
Repeat repeat_of(const store::DeleteItemRequest& request);
Repeat repeat_of(const store::ExecuteStatementRequest& request);
Repeat repeat_of(const store::BatchExecuteStatementRequest& request);

}  // namespace tabella::remote
