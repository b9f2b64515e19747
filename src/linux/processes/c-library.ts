/** A function of the C library. No text may have a NUL in it. */
export type ForeignFunction = (...values: readonly (string | bigint | number)[]) => number;

/** Its functions by name. @throws for an unknown name */
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
 * The GNU C library, where Node.js can call it (`node:ffi`, from version 26.1 on).
 * @param modules where Node.js gives its own modules
 * @throws when it can't: Node.js is older or built without that, or the C library another one
 */
export function openCLibrary(modules: (name: string) => unknown = builtIn): CLibrary {
  const { DynamicLibrary } = modules("node:ffi") as ForeignFunctions;
  const library = new DynamicLibrary("libc.so.6");
  return (name, arguments_, returns) => library.getFunction(name, { arguments: arguments_, return: returns });
}

/** Where the memory begins, for a function that takes a pointer. It must be kept until the function has returned. */
export function addressOf(memory: ArrayBufferView): bigint {
  return (builtIn("node:ffi") as ForeignFunctions).getRawPointer(memory);
}

function builtIn(name: string): unknown {
  return process.getBuiltinModule(name);
}
