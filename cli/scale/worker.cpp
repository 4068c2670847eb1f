#include "cli/scale/worker.hpp"

#include <signal.h>
#include <sys/prctl.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include "cli/scale/block_tests.hpp"
#include "cli/scale/via_pool.hpp"
#include "cli/scale/workloads.hpp"
#include "cli/support/crew.hpp"
#include "cli/support/library.hpp"
#include "cli/support/worker_process.hpp"
#include "freehold/thread_alloc/owner_pages_heap.hpp"

namespace freehold::cli::scale {
namespace {

struct ProcessMalloc {
  static void* allocate(std::size_t bytes) { return std::malloc(bytes); }
  static void deallocate(void* block) { std::free(block); }
};
using OwnerArticle = thread_alloc::OwnerPagesHeap<thread_alloc::ArticlePages<thread_alloc::SystemUpstream>>;
using OwnerMutex = thread_alloc::OwnerPagesHeap<thread_alloc::MutexPages<thread_alloc::SystemUpstream>>;
using OwnerLockFree = thread_alloc::OwnerPagesHeap<thread_alloc::LockFreePages<thread_alloc::SystemUpstream>>;

template <class Blocks>
Body block_test(const Job& job) {
  if (job.test == Workload::kIsolation) return [job](Lane& lane) { return isolation<Blocks>(job, lane); };
  auto rings = std::make_shared<std::vector<std::unique_ptr<BlockRing>>>();
  for (std::uint32_t pair = 0; pair < job.workers / 2; ++pair) rings->push_back(std::make_unique<BlockRing>());
  return [job, rings](Lane& lane) { return handover<Blocks>(job, lane, *rings); };
}

Body block_test_of_source(const Job& job) {
  switch (job.source) {
    case Source::kMalloc: return block_test<ProcessMalloc>(job);
    case Source::kOwnerArticle: return block_test<OwnerArticle>(job);
    case Source::kOwnerMutex: return block_test<OwnerMutex>(job);
    case Source::kOwnerLockFree: return block_test<OwnerLockFree>(job);
  }
  __builtin_unreachable();
}

template <class T>
T require(std::optional<T> value) {
  if (!value) throw std::runtime_error("a word that scale-worker does not know");
  return *value;
}

Job job_of(const std::vector<std::string>& words) {
  if (words.size() != 6) throw std::runtime_error("scale-worker is started by freehold scale");
  return {.test = require(workload_of(words[0])),
          .mode = require(mode_of(words[1])),
          .source = require(source_of(words[2])),
          .workers = static_cast<std::uint32_t>(std::stoul(words[3])),
          .iterations = static_cast<std::uint32_t>(std::stoul(words[4])),
          .units = std::stoull(words[5])};
}

}  // namespace

Body body_of(const Job& job) {
  switch (job.test) {
    case Workload::kCompute: return [job](Lane& lane) { return compute(job, lane); };
    case Workload::kAllocate: return [job](Lane& lane) { return allocate(job, lane); };
    case Workload::kMixed: return [job](Lane& lane) { return mixed(job, lane); };
    case Workload::kMemory: return [job](Lane& lane) { return memory(job, lane); };
    case Workload::kLocked: return [job](Lane& lane) { return locked(job, lane); };
    case Workload::kIsolation:
    case Workload::kHandover: return block_test_of_source(job);
  }
  __builtin_unreachable();
}

std::vector<std::string> worker_arguments(const Job& job) {
  return {kWorkerCommand,
          std::string(name_of(job.test)),
          std::string(name_of(job.mode)),
          std::string(name_of(job.source)),
          std::to_string(job.workers),
          std::to_string(job.iterations),
          std::to_string(job.units)};
}

int worker_main(const std::vector<std::string>& arguments) try {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody measures on when the one who asked is gone
  const Job job = job_of(arguments);
  Report report;
  note_malloc_library(report.malloc_library);
  if (job.mode == Mode::kPool)
    run_in_pool(job, report.crew);
  else
    run_crew(job.mode, job.workers, body_of(job), report.crew);
  return write_report(&report, sizeof report) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

}  // namespace freehold::cli::scale
