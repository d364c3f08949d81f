/* oneCCL, whose processes meet through MPI. */
#include "peer.h"

#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <oneapi/ccl.hpp>

namespace {

int rank, world;

struct Group {
  ccl::communicator communicator;
  ccl::allreduce_attr all_reduce = ccl::create_operation_attr<ccl::allreduce_attr>();
  ccl::allgather_attr all_gather = ccl::create_operation_attr<ccl::allgather_attr>();
  ccl::reduce_scatter_attr reduce_scatter = ccl::create_operation_attr<ccl::reduce_scatter_attr>();
  ccl::broadcast_attr broadcast = ccl::create_operation_attr<ccl::broadcast_attr>();
};

std::unique_ptr<Group> group;

ccl::datatype type_of(int dtype) {
  return dtype == PEER_F32 ? ccl::datatype::float32 : ccl::datatype::bfloat16;
}

/* An exception must not leave a function of C. */
template <typename Body>
int guarded(Body body) {
  try {
    body();
    return 0;
  } catch (const std::exception &e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

}  // namespace

int peer_start() {
  return guarded([] {
    ccl::init();
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    ccl::shared_ptr_class<ccl::kvs> store;
    ccl::kvs::address_type address;
    if (rank == 0) {
      store = ccl::create_main_kvs();
      address = store->get_address();
    }
    MPI_Bcast(address.data(), static_cast<int>(address.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank != 0) store = ccl::create_kvs(address);
    group = std::make_unique<Group>(Group{ccl::create_communicator(world, rank, store)});
    if (rank == 0) std::fprintf(stderr, "oneCCL %s\n", ccl::get_library_version().full);
  });
}

int peer_rank() { return rank; }

int peer_world() { return world; }

int peer_all_reduce(int dtype, size_t count, const void *input, void *output) {
  return guarded([=] {
    ccl::allreduce(input, output, count, type_of(dtype), ccl::reduction::sum, group->communicator,
                   group->all_reduce)
        .wait();
  });
}

int peer_all_gather(int dtype, size_t count, const void *input, void *output) {
  return guarded([=] {
    ccl::allgather(input, output, count, type_of(dtype), group->communicator, group->all_gather)
        .wait();
  });
}

int peer_reduce_scatter(int dtype, size_t count, const void *input, void *output) {
  return guarded([=] {
    ccl::reduce_scatter(input, output, count / static_cast<size_t>(world), type_of(dtype),
                        ccl::reduction::sum, group->communicator, group->reduce_scatter)
        .wait();
  });
}

int peer_broadcast(int dtype, size_t count, void *buffer) {
  return guarded([=] {
    ccl::broadcast(buffer, count, type_of(dtype), 0, group->communicator, group->broadcast).wait();
  });
}

int peer_finish() {
  /* Its own destructors call MPI after MPI is finalised, and fail: the process ends here, once all
   * ranks are through. The loop has printed everything by now. */
  MPI_Barrier(MPI_COMM_WORLD);
  _exit(0);
}
