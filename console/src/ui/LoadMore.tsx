/** The button that loads the next page of a list. */

interface LoadMoreProps {
  readonly read: {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    readonly fetchNextPage: () => unknown;
  };
  readonly onLoad?: () => void;
}

export function LoadMore({ read, onLoad }: LoadMoreProps) {
  if (!read.hasNextPage) return null;
  return (
    <div>
      <button
        type="button"
        className="button"
        disabled={read.isFetchingNextPage}
        onClick={() => {
          onLoad?.();
          read.fetchNextPage();
        }}
      >
        Load earlier entries
      </button>
    </div>
  );
}
