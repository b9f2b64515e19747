/** Opens without reading or writing: never blocks on a pipe and has no effect on devices. */
export const O_PATH = 0o10000000;

/** A path to the open file itself, wherever that has been moved. */
export function descriptorPath(descriptor: number): string {
  return `/proc/self/fd/${descriptor}`;
}
