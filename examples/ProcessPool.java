// SPDX-License-Identifier: MIT
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * The process pool from Java, through JNI (process_pool_jni.c): native code that may crash runs in worker processes, and the
 * virtual machine lives on. Any number of threads may call it.
 *
 * <p>java -Djava.library.path=FOLDER ProcessPool COMPONENT
 */
public final class ProcessPool implements AutoCloseable {
  /** A task that has no output; kinds are those of freehold/process.h, details the signal, the status, what was returned. */
  public static final class TaskFailed extends Exception {
    public final int kind;
    public final int detail;

    TaskFailed(int kind, int detail) {
      super("kind " + kind + ", detail " + detail);
      this.kind = kind;
      this.detail = detail;
    }
  }

  static {
    System.loadLibrary("process_pool_jni");
  }

  /** Of one task, in and out: the pool's default. */
  public static final int MOST_BYTES = 1 << 20;

  private final long pool;
  // Each thread's own room for outputs, kept from call to call. What is not used of it does not exist.
  private final ThreadLocal<ByteBuffer> room = ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(MOST_BYTES));

  public ProcessPool(String component, int attempts, long limitMilliseconds) throws IOException {
    pool = open(component, attempts, limitMilliseconds);
  }

  public byte[] call(byte[] input) throws TaskFailed {
    return call(pool, input);
  }

  /**
   * Without arrays: the input is what is left of a direct buffer; the output is in memory that this thread keeps, until its
   * next call.
   */
  public ByteBuffer call(ByteBuffer input) throws TaskFailed {
    ByteBuffer output = room.get();
    int bytes = call(pool, input, input.position(), input.remaining(), output);
    return output.duplicate().position(0).limit(bytes);
  }

  /**
   * Does not wait. The future is completed by the pool's own thread, so what depends on it should be short, or "Async".
   * Cancelling it does not stop the task.
   */
  public CompletableFuture<byte[]> callAsync(byte[] input) {
    CompletableFuture<byte[]> future = new CompletableFuture<>();
    submit(pool, input, future);
    return future;
  }

  /** No call may be under way; futures that are not completed fail. */
  @Override
  public void close() {
    close(pool);
  }

  private static native long open(String component, int attempts, long limitMilliseconds) throws IOException;

  private static native byte[] call(long pool, byte[] input) throws TaskFailed;

  private static native int call(long pool, ByteBuffer input, int position, int bytes, ByteBuffer output) throws TaskFailed;

  private static native void submit(long pool, byte[] input, CompletableFuture<byte[]> future);

  private static native void close(long pool);

  private static long sumWithBuffers(ProcessPool square) {
    ByteBuffer input = ByteBuffer.allocateDirect(16);
    long sum = 0;
    for (int number = 1; number <= 100; ++number) {
      input.clear().put(Integer.toString(number).getBytes()).flip();
      try {
        sum += Long.parseLong(StandardCharsets.US_ASCII.decode(square.call(input)).toString());
      } catch (TaskFailed failure) {
        continue;
      }
    }
    return sum;
  }

  private static long sumWithFutures(ProcessPool square) {
    List<CompletableFuture<Long>> squares = new ArrayList<>();
    for (int number = 1; number <= 1000; ++number) {
      byte[] input = Integer.toString(1 + (number - 1) % 100).getBytes();
      squares.add(square.callAsync(input).thenApply(output -> Long.parseLong(new String(output))).exceptionally(failure -> 0L));
    }
    return squares.stream().mapToLong(CompletableFuture::join).sum() / 10;
  }

  public static void main(String[] arguments) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(4);
    try (ProcessPool square = new ProcessPool(arguments[0], 2, 10_000)) {
      List<Future<byte[]>> futures = new ArrayList<>();
      for (int number = 1; number <= 100; ++number) {
        byte[] input = Integer.toString(number).getBytes();
        futures.add(threads.submit((Callable<byte[]>) () -> square.call(input)));
      }
      long sum = 0;
      for (int i = 0; i < futures.size(); ++i) {
        try {
          sum += Long.parseLong(new String(futures.get(i).get()));
        } catch (ExecutionException failure) {
          System.out.println((i + 1) + ": failed by signal " + ((TaskFailed) failure.getCause()).detail);
        }
      }
      System.out.println("sum of the squares " + sum);
      System.out.println("with kept buffers " + sumWithBuffers(square) + ", with futures " + sumWithFutures(square));
    } finally {
      threads.shutdown();
    }
  }
}
