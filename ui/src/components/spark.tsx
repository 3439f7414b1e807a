// A small chart without axes in a table cell: a line with its area, and marks for errors.
interface Props {
  values: (number | null)[];
  /** One number for each of `values`. Numbers above 0 get a mark. */
  errors?: (number | null)[];
  label: string;
  width?: number;
  height?: number;
}

export function Spark({ values, errors, label, width = 120, height = 24 }: Props) {
  const max = Math.max(...values.map((value) => value ?? 0), 0);
  const x = (index: number): number => (values.length < 2 ? width / 2 : (index / (values.length - 1)) * width);
  const y = (value: number): number => height - 2 - (max > 0 ? (value / max) * (height - 5) : 0);
  const line = values
    .map((value, index) => `${index === 0 ? 'M' : 'L'}${x(index).toFixed(1)} ${y(value ?? 0).toFixed(1)}`)
    .join('');
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <path class="area" d={`${line}V${height}H0Z`} />
      <path class="line" d={line} />
      {errors?.map(
        (count, index) =>
          (count ?? 0) > 0 && (
            <rect key={index} class="bad" x={(x(index) - 0.75).toFixed(1)} y={height - 3} width="1.5" height="3" />
          ),
      )}
    </svg>
  );
}
