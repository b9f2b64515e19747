import { isCriError } from "../../ports/cri.ts";

/** Stopping and removing are idempotent in CRI: not found is success. */
export async function ignoreNotFound(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isCriError(error, "NotFound")) throw error;
  }
}
