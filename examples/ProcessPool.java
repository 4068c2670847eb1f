import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
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
  /** A task that has no output; kinds are those of freehold_process.h, details the signal, the status, what was returned. */
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

  private final long pool;

  public ProcessPool(String component, int attempts, long limitMilliseconds) throws IOException {
    pool = open(component, attempts, limitMilliseconds);
  }

  public byte[] call(byte[] input) throws TaskFailed {
    return call(pool, input);
  }

  /** No call may be under way. */
  @Override
  public void close() {
    close(pool);
  }

  private static native long open(String component, int attempts, long limitMilliseconds) throws IOException;

  private static native byte[] call(long pool, byte[] input) throws TaskFailed;

  private static native void close(long pool);

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
    } finally {
      threads.shutdown();
    }
  }
}
