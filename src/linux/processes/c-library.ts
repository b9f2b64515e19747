/** A function of the C library. Strings must not contain NUL. */
export type ForeignFunction = (...values: readonly (string | bigint | number)[]) => number;

/** The library's functions by name. @throws for an unknown name */
export type CLibrary = (name: string, arguments_: readonly string[], returns: "int32") => ForeignFunction;

/** The used part of `node:ffi`. */
interface ForeignFunctions {
  readonly DynamicLibrary: new (path: string) => {
    getFunction(
      name: string,
      signature: { readonly arguments: readonly string[]; readonly return: string },
    ): ForeignFunction;
  };
  readonly getRawPointer: (memory: ArrayBufferView) => bigint;
}

/**
 * The GNU C library, where Node.js can call it (`node:ffi`, 26.1 or newer).
 * @param modules access to Node.js' built-in modules
 * @throws when unavailable: Node.js is older or built without `node:ffi`, or the C library is another one
 */
export function openCLibrary(modules: (name: string) => unknown = builtIn): CLibrary {
  const { DynamicLibrary } = modules("node:ffi") as ForeignFunctions;
  const library = new DynamicLibrary("libc.so.6");
  return (name, arguments_, returns) => library.getFunction(name, { arguments: arguments_, return: returns });
}

/** The address of a buffer, for a pointer argument. Keep the buffer referenced until the function has returned. */
export function addressOf(memory: ArrayBufferView): bigint {
  return (builtIn("node:ffi") as ForeignFunctions).getRawPointer(memory);
}

function builtIn(name: string): unknown {
  return process.getBuiltinModule(name);
}
