// SPDX-License-Identifier: MIT
/* The native part of ProcessPool.java: calls the functions of freehold/process.h through the Java Native Interface. */
#include <jni.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "freehold/process.h"

static JavaVM* g_machine;
static pthread_key_t g_attached; /* set in threads that we have attached, which have to be detached at their end */

static void detach(void* attached) {
  (void)attached;
  (*g_machine)->DetachCurrentThread(g_machine);
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* machine, void* reserved) {
  (void)reserved;
  g_machine = machine;
  return pthread_key_create(&g_attached, detach) == 0 ? JNI_VERSION_1_8 : JNI_ERR;
}

static JNIEnv* attached_environment(void) {
  JNIEnv* env = NULL;
  if ((*g_machine)->GetEnv(g_machine, (void**)&env, JNI_VERSION_1_8) == JNI_OK) return env;
  if ((*g_machine)->AttachCurrentThreadAsDaemon(g_machine, (void**)&env, NULL) != JNI_OK) return NULL;
  pthread_setspecific(g_attached, env);
  return env;
}

static freehold_process_pool_t* pool_of(jlong handle) { return (freehold_process_pool_t*)(intptr_t)handle; }

/* NULL: an exception is pending. */
static jobject task_failed(JNIEnv* env, int kind, int detail) {
  jclass class = (*env)->FindClass(env, "ProcessPool$TaskFailed");
  jmethodID constructor = class != NULL ? (*env)->GetMethodID(env, class, "<init>", "(II)V") : NULL;
  return constructor != NULL ? (*env)->NewObject(env, class, constructor, kind, detail) : NULL;
}

static void fail(JNIEnv* env, int kind, int detail) {
  jobject failure = task_failed(env, kind, detail);
  if (failure != NULL) (*env)->Throw(env, failure);
}

static void fail_with(JNIEnv* env, const char* exception, const char* text) {
  jclass class = (*env)->FindClass(env, exception);
  if (class != NULL) (*env)->ThrowNew(env, class, text);
}

JNIEXPORT jlong JNICALL Java_ProcessPool_open(JNIEnv* env, jclass self, jstring component, jint attempts,
                                              jlong run_timeout_ms) {
  (void)self;
  const char* path = (*env)->GetStringUTFChars(env, component, NULL);
  if (path == NULL) return 0;
  freehold_process_pool_options_t options = {.size = sizeof options,
                                             .component = path,
                                             .max_attempts = (uint32_t)attempts,
                                             .run_timeout_ms = (uint64_t)run_timeout_ms};
  freehold_process_pool_t* pool = freehold_process_pool_create(&options);
  (*env)->ReleaseStringUTFChars(env, component, path);
  char error[256];
  if (freehold_process_pool_error(pool, error, sizeof error) != 0) {
    freehold_process_pool_destroy(pool);
    pool = NULL;
    fail_with(env, "java/io/IOException", error);
  }
  return (jlong)(intptr_t)pool;
}

/* The output's length is not known before it is there: asked without room, the task says it and stays. */
static jbyteArray take(JNIEnv* env, freehold_process_task_t* task) {
  size_t bytes = 0;
  int detail = 0;
  void* output = NULL;
  int kind = freehold_process_task_get(task, NULL, 0, &bytes, &detail);
  if (kind == FREEHOLD_PROCESS_OUTPUT_TOO_SMALL) {
    output = malloc(bytes);
    if (output == NULL) {
      freehold_process_task_cancel(task);
      fail_with(env, "java/lang/OutOfMemoryError", "the output of a task");
      return NULL;
    }
    kind = freehold_process_task_get(task, output, bytes, &bytes, &detail);
  }
  jbyteArray array = kind == FREEHOLD_PROCESS_OK ? (*env)->NewByteArray(env, (jsize)bytes) : NULL;
  if (array != NULL) (*env)->SetByteArrayRegion(env, array, 0, (jsize)bytes, output);
  if (kind != FREEHOLD_PROCESS_OK) fail(env, kind, detail);
  free(output);
  return array;
}

JNIEXPORT jbyteArray JNICALL Java_ProcessPool_call__J_3B(JNIEnv* env, jclass self, jlong pool, jbyteArray input) {
  (void)self;
  const jsize bytes = (*env)->GetArrayLength(env, input);
  jbyte* data = (*env)->GetByteArrayElements(env, input, NULL);
  if (data == NULL) return NULL;
  freehold_process_task_t* task = NULL;
  const int refused = freehold_process_pool_submit(pool_of(pool), data, (size_t)bytes, NULL, &task);
  (*env)->ReleaseByteArrayElements(env, input, data, JNI_ABORT);
  if (refused == FREEHOLD_PROCESS_OK) return take(env, task);
  fail(env, refused, 0);
  return NULL;
}

JNIEXPORT jint JNICALL Java_ProcessPool_call__JLjava_nio_ByteBuffer_2IILjava_nio_ByteBuffer_2(JNIEnv* env, jclass self,
                                                                                              jlong pool, jobject input,
                                                                                              jint position, jint bytes,
                                                                                              jobject output) {
  (void)self;
  const char* from = (*env)->GetDirectBufferAddress(env, input);
  void* to = (*env)->GetDirectBufferAddress(env, output);
  if (from == NULL || to == NULL) {
    fail_with(env, "java/lang/IllegalArgumentException", "the input is no direct buffer");
    return 0;
  }
  size_t written = 0;
  int detail = 0;
  const size_t room = (size_t)(*env)->GetDirectBufferCapacity(env, output);
  const int kind =
      freehold_process_pool_call(pool_of(pool), from + position, (size_t)bytes, NULL, to, room, &written, &detail);
  if (kind != FREEHOLD_PROCESS_OK) fail(env, kind, detail);
  return (jint)written;
}

/* `future` is a global reference. On the pool's thread, or the submitting one if the task was refused. */
static void complete(void* future, int kind, int detail, const void* output, size_t bytes) {
  JNIEnv* env = attached_environment();
  if (env == NULL || (*env)->PushLocalFrame(env, 16) != 0) return; /* the virtual machine ends */
  jclass class = (*env)->GetObjectClass(env, future);
  if (kind == FREEHOLD_PROCESS_OK) {
    jbyteArray array = (*env)->NewByteArray(env, (jsize)bytes);
    if (array != NULL) {
      (*env)->SetByteArrayRegion(env, array, 0, (jsize)bytes, output);
      (*env)->CallBooleanMethod(env, future, (*env)->GetMethodID(env, class, "complete", "(Ljava/lang/Object;)Z"), array);
    }
  }
  /* Also when there was no memory for the array: then with that. */
  jthrowable failure = (*env)->ExceptionOccurred(env);
  (*env)->ExceptionClear(env);
  if (kind != FREEHOLD_PROCESS_OK) failure = task_failed(env, kind, detail);
  if (failure != NULL)
    (*env)->CallBooleanMethod(env, future,
                              (*env)->GetMethodID(env, class, "completeExceptionally", "(Ljava/lang/Throwable;)Z"), failure);
  (*env)->ExceptionClear(env);
  (*env)->DeleteGlobalRef(env, future);
  (*env)->PopLocalFrame(env, NULL);
}

JNIEXPORT void JNICALL Java_ProcessPool_submit(JNIEnv* env, jclass self, jlong pool, jbyteArray input, jobject future) {
  (void)self;
  const jsize bytes = (*env)->GetArrayLength(env, input);
  jbyte* data = (*env)->GetByteArrayElements(env, input, NULL);
  if (data == NULL) return;
  freehold_process_task_t* task = NULL;
  const int refused = freehold_process_pool_submit(pool_of(pool), data, (size_t)bytes, NULL, &task);
  (*env)->ReleaseByteArrayElements(env, input, data, JNI_ABORT);
  jobject kept = (*env)->NewGlobalRef(env, future);
  if (refused == FREEHOLD_PROCESS_OK)
    freehold_process_task_then(task, complete, kept);
  else
    complete(kept, refused, 0, NULL, 0);
}

JNIEXPORT void JNICALL Java_ProcessPool_close(JNIEnv* env, jclass self, jlong pool) {
  (void)env;
  (void)self;
  freehold_process_pool_destroy(pool_of(pool));
}
