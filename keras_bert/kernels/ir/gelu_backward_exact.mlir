module {
  tt.func public @gelu_backward(%d_out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %x: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %bias: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %d_x: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %rows = arith.constant $rows : i32
    %hidden = arith.constant $hidden : i32
    %cst = arith.constant dense<-0.72134751> : tensor<16x512xf32>
    %cst_0 = arith.constant dense<0.231641889> : tensor<16x512xf32>
    %cst_1 = arith.constant dense<1.000000e+00> : tensor<16x512xf32>
    %cst_2 = arith.constant dense<5.000000e-01> : tensor<16x512xf32>
    %cst_3 = arith.constant dense<1.06140542> : tensor<16x512xf32>
    %cst_4 = arith.constant dense<-1.45315206> : tensor<16x512xf32>
    %cst_5 = arith.constant dense<1.42141378> : tensor<16x512xf32>
    %cst_6 = arith.constant dense<-0.284496725> : tensor<16x512xf32>
    %cst_7 = arith.constant dense<0.254829586> : tensor<16x512xf32>
    %cst_8 = arith.constant dense<0.398942292> : tensor<16x512xf32>
    %cst_9 = arith.constant dense<0.000000e+00> : tensor<16x512x$float>
    %cst_10 = arith.constant dense<0.000000e+00> : tensor<1x512x$float>
    %cst_11 = arith.constant dense<0.000000e+00> : tensor<16x512xf32>
    %c16_i32 = arith.constant 16 : i32
    %c512_i32 = arith.constant 512 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_num_programs x : i32
    %2 = tt.get_program_id y : i32
    %3 = arith.muli %2, %c512_i32 : i32
    %4 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %5 = tt.expand_dims %4 {axis = 0 : i32} : tensor<512xi32> -> tensor<1x512xi32>
    %6 = tt.splat %3 : i32 -> tensor<1x512xi32>
    %7 = arith.addi %6, %5 : tensor<1x512xi32>
    %8 = tt.splat %hidden : i32 -> tensor<1x512xi32>
    %9 = arith.cmpi slt, %7, %8 : tensor<1x512xi32>
    %10 = tt.splat %bias : !tt.ptr<$float> -> tensor<1x512x!tt.ptr<$float>>
    %11 = tt.addptr %10, %7 : tensor<1x512x!tt.ptr<$float>>, tensor<1x512xi32>
    %12 = tt.load %11, %9, %cst_10 : tensor<1x512x!tt.ptr<$float>>
    %13 = arith.extf %12 : tensor<1x512x$float> to tensor<1x512xf32>
    %14 = arith.muli %0, %c16_i32 : i32
    %15 = arith.muli %1, %c16_i32 : i32
    %16 = scf.for %arg7 = %14 to %rows step %15 iter_args(%arg8 = %cst_11) -> (tensor<16x512xf32>)  : i32 {
      %26 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
      %27 = tt.expand_dims %26 {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
      %28 = tt.splat %arg7 : i32 -> tensor<16x1xi32>
      %29 = arith.addi %28, %27 : tensor<16x1xi32>
      %30 = tt.splat %rows : i32 -> tensor<16x1xi32>
      %31 = arith.cmpi slt, %29, %30 : tensor<16x1xi32>
      %32 = tt.broadcast %31 : tensor<16x1xi1> -> tensor<16x512xi1>
      %33 = tt.broadcast %9 : tensor<1x512xi1> -> tensor<16x512xi1>
      %34 = arith.andi %32, %33 : tensor<16x512xi1>
      %35 = arith.extsi %29 : tensor<16x1xi32> to tensor<16x1xi64>
      %36 = arith.extsi %hidden : i32 to i64
      %37 = tt.splat %36 : i64 -> tensor<16x1xi64>
      %38 = arith.muli %35, %37 : tensor<16x1xi64>
      %39 = arith.extsi %7 : tensor<1x512xi32> to tensor<1x512xi64>
      %40 = tt.broadcast %38 : tensor<16x1xi64> -> tensor<16x512xi64>
      %41 = tt.broadcast %39 : tensor<1x512xi64> -> tensor<16x512xi64>
      %42 = arith.addi %40, %41 : tensor<16x512xi64>
      %43 = tt.splat %x : !tt.ptr<$float> -> tensor<16x512x!tt.ptr<$float>>
      %44 = tt.addptr %43, %42 : tensor<16x512x!tt.ptr<$float>>, tensor<16x512xi64>
      %45 = tt.load %44, %34, %cst_9 : tensor<16x512x!tt.ptr<$float>>
      %46 = arith.extf %45 : tensor<16x512x$float> to tensor<16x512xf32>
      %47 = tt.broadcast %13 : tensor<1x512xf32> -> tensor<16x512xf32>
      %48 = arith.addf %46, %47 : tensor<16x512xf32>
      %49 = arith.mulf %48, %48 : tensor<16x512xf32>
      %50 = arith.mulf %49, %cst : tensor<16x512xf32>
      %51 = math.exp2 %50 : tensor<16x512xf32>
      %52 = math.absf %48 : tensor<16x512xf32>
      %53 = arith.mulf %52, %cst_0 : tensor<16x512xf32>
      %54 = arith.addf %53, %cst_1 : tensor<16x512xf32>
      %55 = arith.divf %cst_1, %54 : tensor<16x512xf32>
      %56 = arith.mulf %55, %cst_2 : tensor<16x512xf32>
      %57 = arith.mulf %56, %51 : tensor<16x512xf32>
      %58 = arith.mulf %55, %cst_3 : tensor<16x512xf32>
      %59 = arith.addf %58, %cst_4 : tensor<16x512xf32>
      %60 = arith.mulf %55, %59 : tensor<16x512xf32>
      %61 = arith.addf %60, %cst_5 : tensor<16x512xf32>
      %62 = arith.mulf %55, %61 : tensor<16x512xf32>
      %63 = arith.addf %62, %cst_6 : tensor<16x512xf32>
      %64 = arith.mulf %55, %63 : tensor<16x512xf32>
      %65 = arith.addf %64, %cst_7 : tensor<16x512xf32>
      %66 = arith.mulf %57, %65 : tensor<16x512xf32>
      %67 = arith.cmpf olt, %48, %cst_11 : tensor<16x512xf32>
      %68 = arith.subf %cst_1, %66 : tensor<16x512xf32>
      %69 = arith.select %67, %66, %68 : tensor<16x512xi1>, tensor<16x512xf32>
      %70 = arith.mulf %51, %cst_8 : tensor<16x512xf32>
      %71 = tt.splat %d_out : !tt.ptr<$float> -> tensor<16x512x!tt.ptr<$float>>
      %72 = tt.addptr %71, %42 : tensor<16x512x!tt.ptr<$float>>, tensor<16x512xi64>
      %73 = tt.load %72, %34, %cst_9 : tensor<16x512x!tt.ptr<$float>>
      %74 = arith.extf %73 : tensor<16x512x$float> to tensor<16x512xf32>
      %75 = arith.mulf %48, %70 : tensor<16x512xf32>
      %76 = arith.addf %69, %75 : tensor<16x512xf32>
      %77 = arith.mulf %74, %76 : tensor<16x512xf32>
      %78 = arith.truncf %77 : tensor<16x512xf32> to tensor<16x512x$float>
      %79 = tt.splat %d_x : !tt.ptr<$float> -> tensor<16x512x!tt.ptr<$float>>
      %80 = tt.addptr %79, %42 : tensor<16x512x!tt.ptr<$float>>, tensor<16x512xi64>
      tt.store %80, %78, %34 : tensor<16x512x!tt.ptr<$float>>
      %81 = arith.extf %78 : tensor<16x512x$float> to tensor<16x512xf32>
      %82 = arith.select %34, %81, %cst_11 : tensor<16x512xi1>, tensor<16x512xf32>
      %83 = arith.addf %arg8, %82 : tensor<16x512xf32>
      scf.yield %83 : tensor<16x512xf32>
    }
    %17 = tt.splat %3 : i32 -> tensor<512xi32>
    %18 = arith.addi %17, %4 : tensor<512xi32>
    %19 = tt.splat %hidden : i32 -> tensor<512xi32>
    %20 = arith.cmpi slt, %18, %19 : tensor<512xi32>
    %21 = arith.muli %0, %hidden : i32
    %22 = tt.addptr %sums, %21 : !tt.ptr<f32>, i32
    %23 = tt.splat %22 : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %24 = tt.addptr %23, %18 : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %25 = "tt.reduce"(%16) <{axis = 0 : i32}> ({
    ^bb0(%arg7: f32, %arg8: f32):
      %26 = arith.addf %arg7, %arg8 : f32
      tt.reduce.return %26 : f32
    }) : (tensor<16x512xf32>) -> tensor<512xf32>
    tt.store %24, %25, %20 : tensor<512x!tt.ptr<f32>>
    tt.return
  }
}
