/** For what the bundle is translated. */
export const bundleTarget = {
  platform: "node",
  target: "node24",
  // esbuild's own translation of `using` repeats the error of one round of a loop in all rounds that follow.
  supported: { using: true },
} as const;
