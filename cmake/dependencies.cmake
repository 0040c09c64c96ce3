# Everything comes from Debian 12's packages; scripts/install.sh names them.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(simdjson REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(GTest REQUIRED)

# The static library: in a shared one every step of an iterator pays for a look-up of thread-local storage.
find_library(ROCKSDB_ARCHIVE librocksdb.a REQUIRED)
add_library(rocksdb INTERFACE)
target_link_libraries(rocksdb INTERFACE ${ROCKSDB_ARCHIVE} gflags snappy z bz2 lz4 zstd Threads::Threads ${CMAKE_DL_LIBS})
find_library(XXHASH_LIBRARY xxhash REQUIRED)

# MariaDB's client library, which speaks to MySQL as well.
find_path(MARIADB_INCLUDE mysql.h PATH_SUFFIXES mariadb REQUIRED)
find_library(MARIADB_LIBRARY mariadb REQUIRED)
add_library(mariadb INTERFACE)
target_include_directories(mariadb SYSTEM INTERFACE ${MARIADB_INCLUDE})
target_link_libraries(mariadb INTERFACE ${MARIADB_LIBRARY})
find_library(CARES_LIBRARY cares REQUIRED)

add_library(asio INTERFACE)
target_compile_definitions(asio INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE)
target_link_libraries(asio INTERFACE Boost::headers Threads::Threads)

# The allocator of the release binary. Sanitizers bring their own.
if(NOT TABELLA_SANITIZE)
  find_library(JEMALLOC_LIBRARY libjemalloc.a REQUIRED)
endif()
