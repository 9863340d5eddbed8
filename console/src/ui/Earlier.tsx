/** The button that loads the next page of a list. */

interface EarlierProps {
  readonly read: {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    readonly fetchNextPage: () => unknown;
  };
}

export function Earlier({ read }: EarlierProps) {
  if (!read.hasNextPage) return null;
  return (
    <div>
      <button
        type="button"
        className="button"
        disabled={read.isFetchingNextPage}
        onClick={() => read.fetchNextPage()}
      >
        Earlier entries
      </button>
    </div>
  );
}
