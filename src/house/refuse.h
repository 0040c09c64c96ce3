// Answering with an error of the store.
#pragma once

#include "net/call.h"
#include "store/error.h"

namespace tabella::house {

// What a store could not do is our trouble and not the caller's: 503, which is worth another try, or 500.
inline void refuse(net::Call& call, const store::Error& error) {
  call.refuse(error.code == store::ErrorCode::internal ? 500 : 503, error.message);
}

}  // namespace tabella::house
