# What the library needs: found for the build, and again for every program that uses an installed one. Whoever includes
# it says with tabella_needs(PACKAGE …) how a package is found, and with tabella_needs_library(VARIABLE NAME) how a
# library is that brings no package of its own.
set(THREADS_PREFER_PTHREAD_FLAG ON)
tabella_needs(Threads)
tabella_needs(Boost 1.81)
tabella_needs(OpenSSL 3)
tabella_needs(ZLIB)
tabella_needs(simdjson)
tabella_needs(fmt)
tabella_needs(spdlog)
# The static library: in a shared one every step of an iterator pays for a look-up of thread-local storage.
tabella_needs_library(TABELLA_ROCKSDB librocksdb.a)
tabella_needs_library(TABELLA_XXHASH xxhash)
tabella_needs_library(TABELLA_CARES cares)
tabella_needs_library(TABELLA_DEFLATE deflate)

if(NOT TARGET Tabella::asio)
  add_library(Tabella::asio INTERFACE IMPORTED)
  target_compile_definitions(Tabella::asio INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE)
  target_link_libraries(Tabella::asio INTERFACE Boost::headers Threads::Threads)

  add_library(Tabella::rocksdb INTERFACE IMPORTED)
  target_link_libraries(Tabella::rocksdb INTERFACE ${TABELLA_ROCKSDB} gflags snappy z bz2 lz4 zstd Threads::Threads ${CMAKE_DL_LIBS})
  add_library(Tabella::xxhash INTERFACE IMPORTED)
  target_link_libraries(Tabella::xxhash INTERFACE ${TABELLA_XXHASH})
  add_library(Tabella::cares INTERFACE IMPORTED)
  target_link_libraries(Tabella::cares INTERFACE ${TABELLA_CARES})
  add_library(Tabella::deflate INTERFACE IMPORTED)
  target_link_libraries(Tabella::deflate INTERFACE ${TABELLA_DEFLATE})
endif()
