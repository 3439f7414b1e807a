package bulletinboard.model;

/** Which part of a list is wanted. {@code number} counts from 1. */
public record Page(int number, int size) {

    /** Rows that lie before this page. */
    public long offset() {
        return (number - 1L) * size;
    }
}
