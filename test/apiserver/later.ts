import { ApiError } from "./api-error.ts";

/**
 * Does a controller's work once the change that it was told of is over, whose own event comes first. A refusal is no
 * defect: what the work was for may be gone by then.
 */
export function later(work: () => void): void {
  queueMicrotask(() => {
    try {
      work();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  });
}
