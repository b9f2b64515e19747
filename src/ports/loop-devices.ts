/** Loop devices over devices and files. While there is one, the kernel keeps what is below it under its name. */
export interface LoopDevices {
  /** Whether there is one over the path. */
  isHeld(path: string): Promise<boolean>;
  /** Makes one, unless there is one. */
  hold(path: string): Promise<void>;
  /** Removes it; none is no error. */
  release(path: string): Promise<void>;
}
