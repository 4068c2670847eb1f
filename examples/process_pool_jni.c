/* What ProcessPool.java calls: freehold_process.h, spoken by the Java Native Interface. */
#include <jni.h>
#include <stdint.h>
#include <stdlib.h>

#include "freehold/process/freehold_process.h"

static freehold_pool* pool_of(jlong handle) { return (freehold_pool*)(intptr_t)handle; }

static void fail(JNIEnv* env, int kind, int detail) {
  jclass class = (*env)->FindClass(env, "ProcessPool$TaskFailed");
  if (class == NULL) return; /* an exception is pending */
  jmethodID constructor = (*env)->GetMethodID(env, class, "<init>", "(II)V");
  jobject failure = constructor != NULL ? (*env)->NewObject(env, class, constructor, kind, detail) : NULL;
  if (failure != NULL) (*env)->Throw(env, failure);
}

static void fail_with(JNIEnv* env, const char* exception, const char* text) {
  jclass class = (*env)->FindClass(env, exception);
  if (class != NULL) (*env)->ThrowNew(env, class, text);
}

JNIEXPORT jlong JNICALL Java_ProcessPool_open(JNIEnv* env, jclass self, jstring component, jint attempts, jlong limit_ms) {
  (void)self;
  const char* path = (*env)->GetStringUTFChars(env, component, NULL);
  if (path == NULL) return 0;
  freehold_pool_options options = {
      .size = sizeof options, .component = path, .attempts = (uint32_t)attempts, .limit_ms = (uint64_t)limit_ms};
  char error[256];
  freehold_pool* pool = freehold_pool_open(&options, error, sizeof error);
  (*env)->ReleaseStringUTFChars(env, component, path);
  if (pool == NULL) fail_with(env, "java/io/IOException", error);
  return (jlong)(intptr_t)pool;
}

/* The output's length is not known before it is there: asked without room, the task says it and stays. */
static jbyteArray take(JNIEnv* env, freehold_task* task) {
  size_t bytes = 0;
  int detail = 0;
  void* output = NULL;
  int kind = freehold_task_get(task, NULL, 0, &bytes, &detail);
  if (kind == FREEHOLD_OUTPUT_TOO_SMALL) {
    output = malloc(bytes);
    if (output == NULL) {
      freehold_task_cancel(task);
      fail_with(env, "java/lang/OutOfMemoryError", "the output of a task");
      return NULL;
    }
    kind = freehold_task_get(task, output, bytes, &bytes, &detail);
  }
  jbyteArray array = kind == FREEHOLD_OK ? (*env)->NewByteArray(env, (jsize)bytes) : NULL;
  if (array != NULL) (*env)->SetByteArrayRegion(env, array, 0, (jsize)bytes, output);
  if (kind != FREEHOLD_OK) fail(env, kind, detail);
  free(output);
  return array;
}

JNIEXPORT jbyteArray JNICALL Java_ProcessPool_call(JNIEnv* env, jclass self, jlong pool, jbyteArray input) {
  (void)self;
  const jsize bytes = (*env)->GetArrayLength(env, input);
  jbyte* data = (*env)->GetByteArrayElements(env, input, NULL);
  if (data == NULL) return NULL;
  freehold_task* task = NULL;
  const int refused = freehold_pool_submit(pool_of(pool), data, (size_t)bytes, FREEHOLD_FOR_EVER, &task);
  (*env)->ReleaseByteArrayElements(env, input, data, JNI_ABORT);
  if (refused == FREEHOLD_OK) return take(env, task);
  fail(env, refused, 0);
  return NULL;
}

JNIEXPORT void JNICALL Java_ProcessPool_close(JNIEnv* env, jclass self, jlong pool) {
  (void)env;
  (void)self;
  freehold_pool_close(pool_of(pool));
}
