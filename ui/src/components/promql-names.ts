// The names that the server knows for the position of the cursor.
import { api } from '../lib/api';
import { useResource } from '../lib/resource';
import type { TimeWindow } from '../lib/time';
import type { Context } from '../promql/context';

/** The key of the request for names; null where no names apply. */
function keyOf(context: Context): string | null {
  switch (context.kind) {
    case 'expression':
      return 'metrics';
    case 'label':
      return `labels|${context.metric ?? ''}`;
    case 'grouping':
      return 'labels|';
    case 'value':
      return `values|${context.label}|${context.metric ?? ''}`;
    case 'duration':
    case 'none':
      return null;
  }
}

/** The list is empty while names are loading, because names for another position would be wrong. */
export function useNames(context: Context, range: TimeWindow): readonly string[] {
  const key = keyOf(context);
  const names = useResource(key, (signal) => {
    if (context.kind === 'expression') return api.labelValues('__name__', null, range, signal);
    if (context.kind === 'value') return api.labelValues(context.label, context.metric, range, signal);
    return api.labelNames(context.kind === 'label' ? context.metric : null, range, signal);
  });
  return key === null || names.key !== key ? [] : (names.data ?? []);
}
