import { isCriError } from "../../ports/cri.ts";

/** What is not there needs no stopping and no removing (CRI: these calls are idempotent). */
export async function ignoreNotFound(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isCriError(error, "NotFound")) throw error;
  }
}
